#!/usr/bin/env bash
# The page of hpbench in a real browser: headless Chromium renders it, the DOM
# has its parts and wants nothing from the network, the picture is not blank.
source "$(dirname "$0")/common.sh"

have_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! have_browser >/dev/null; then
    command -v apt-get >/dev/null || skip "no Chromium here, and no apt-get to install it"
    sudo=()
    ((EUID == 0)) || sudo=(sudo -n)
    "${sudo[@]}" apt-get install -y chromium >/dev/null || skip "Chromium cannot be installed"
fi

# With the variable a missing browser is a failure and not a skip.
HPBENCH_NEED_BROWSER=1 cargo test -p bench-suite --test report
