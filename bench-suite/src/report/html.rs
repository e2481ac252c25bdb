//! Floor 3, bench-suite. Owns the page: one file with machine, tables, pictures and records of all workloads, readable
//! without a network, a script or a font of its own. May ask for tables and pictures; touches no file.
//!
//! Everything that comes from outside passes through [`escape`]. The page is well-formed XML, too, which a test uses.

mod machine;
mod published;
mod style;
mod workload;

use super::facts::{Facts, by_machine};
use super::record::{Record, Status};
use super::summary::groups;
use crate::workloads::Workload;
use std::fmt::Write;

/// Text as it may stand in an element or in an attribute's quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Neither HTML nor XML has a place for them.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The whole page.
pub(crate) fn render(records: &[Record], asked: Option<&str>) -> String {
    let machines = by_machine(records);
    let several = machines.len() > 1;
    let mut contents = String::new();
    let mut body = String::new();
    for (index, records) in machines.iter().enumerate() {
        let facts = Facts::of(records);
        let id = format!("m{}", index + 1);
        let name = if several {
            format!("Machine {}: {}", index + 1, facts.name)
        } else {
            "Machine and measurement".to_owned()
        };
        let _ = write!(contents, "<li><a href=\"#{id}\">{}</a><ol>", escape(&name));
        let _ = write!(
            body,
            "<section id=\"{id}\" class=\"machine\">\n<h2>{}</h2>\n{}",
            escape(&name),
            machine::section(&facts, records)
        );
        for &workload in Workload::ALL {
            if !records.iter().any(|record| record.workload == workload) {
                continue;
            }
            let id = format!("{id}-{}", workload.name());
            let _ = write!(
                contents,
                "<li><a href=\"#{id}\">{}</a></li>",
                escape(workload.name())
            );
            body.push_str(&workload::section(
                records,
                workload,
                asked,
                facts.topology,
                &id,
            ));
        }
        let _ = write!(
            contents,
            "<li><a href=\"#{id}-raw\">Records</a></li></ol></li>"
        );
        body.push_str(&raw(records, &id));
        body.push_str("</section>\n");
    }
    contents.push_str("<li><a href=\"#published\">What others published</a></li>");
    body.push_str(&published::section());
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <title>hpbench report</title>\n<style>{}</style>\n</head>\n<body>\n\
         <header>\n<h1>hpbench report</h1>\n<p>{}</p>\n</header>\n\
         <nav aria-label=\"contents\">\n<h2>Contents</h2>\n<ol>{contents}</ol>\n</nav>\n\
         <main>\n{body}</main>\n\
         <footer><p>Written by hpbench {}. Nothing on this page is fetched from elsewhere.</p></footer>\n\
         </body>\n</html>\n",
        style::SHEET,
        escape(&summary(records, machines.len())),
        env!("CARGO_PKG_VERSION"),
    )
}

/// What is in it, in a sentence.
fn summary(records: &[Record], machines: usize) -> String {
    use super::human::plural;
    let ran = |status| records.iter().filter(|r| r.status == status).count();
    let workloads: Vec<&str> = Workload::ALL
        .iter()
        .filter(|&&workload| !groups(records, workload).is_empty())
        .map(|workload| workload.name())
        .collect();
    let mut text = format!(
        "{} of {} on {}",
        plural(ran(Status::Ok), "run"),
        workloads.join(", "),
        plural(machines, "machine")
    );
    let failed = ran(Status::Failed);
    if failed > 0 {
        let _ = write!(text, "; {} FAILED", plural(failed, "run"));
    }
    text.push('.');
    text
}

/// A table of names and values.
fn pairs(class: &str, rows: &[(String, String)]) -> String {
    let mut text = format!("<div class=\"scroll\"><table class=\"{class}\"><tbody>\n");
    for (name, value) in rows {
        let _ = writeln!(
            text,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escape(name),
            escape(value)
        );
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// A table with a heading; the first column names the rows.
fn grid(class: &str, heads: &[String], rows: &[Vec<String>]) -> String {
    let wide = if heads.len() > 10 { " wide" } else { "" };
    let mut text = format!("<div class=\"scroll\"><table class=\"{class}{wide}\"><thead><tr>");
    for head in heads {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escape(head));
    }
    text.push_str("</tr></thead><tbody>\n");
    for row in rows {
        text.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let class = match cell.as_str() {
                "faster" | "fewer" => " class=\"good\"",
                "slower" | "more" => " class=\"bad\"",
                _ => "",
            };
            let _ = match index {
                0 => write!(text, "<th scope=\"row\">{cell}</th>"),
                _ => write!(text, "<td{class}>{cell}</td>"),
            };
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// The records, a line each, without the machine, which is above.
fn raw(records: &[Record], id: &str) -> String {
    let mut text = format!(
        "<section id=\"{id}-raw\">\n<h3>Records</h3>\n<details><summary>{} as JSON lines</summary>\n<pre>",
        super::human::plural(records.len(), "record")
    );
    for record in records {
        let mut short = record.clone();
        short
            .params
            .retain(|name, value| !(name.starts_with("machine") && value.is_object()));
        text.push_str(&escape(&short.to_line()));
    }
    text.push_str("</pre></details>\n</section>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use serde_json::json;

    /// The page as a tree; that it has one shows that it is well-formed.
    fn parsed(page: &str, look: impl FnOnce(&roxmltree::Document<'_>)) {
        let options = roxmltree::ParsingOptions {
            allow_dtd: true,
            ..roxmltree::ParsingOptions::default()
        };
        match roxmltree::Document::parse_with_options(page, options) {
            Ok(tree) => look(&tree),
            Err(error) => panic!("{error}"),
        }
    }

    fn records() -> Vec<Record> {
        let mut records = Vec::new();
        for threads in [1, 2, 4] {
            for run in 0..3 {
                let ops = 1000 * threads as u64 + run as u64;
                records.push(sample(Workload::Read, "hp", threads, run, ops));
                records.push(sample(Workload::Read, "mutex", threads, run, ops / 2));
            }
        }
        for record in &mut records {
            record.set("machine", "a & b");
        }
        records
    }

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let mut records = records();
        let nasty = "<script>alert('x')</script> & \"more\" \u{1}";
        records[0].variant = nasty.to_owned();
        records[0].remark(nasty);
        records[1].set("point", nasty);
        records[2].set("command", nasty);
        records[3].set("machine", nasty);
        records[4].set("machine_record", json!({ nasty: nasty }));
        records[5].status = Status::Failed;
        records[5].note = nasty.to_owned();
        let page = render(&records, None);
        assert!(!page.contains("<script"));
        parsed(&page, |tree| {
            let texts = tree.descendants().filter_map(|node| node.text());
            let found =
                texts.filter(|text| text.contains("<script>alert('x')</script> & \"more\""));
            assert!(found.count() >= 6, "as text it is there");
        });
    }

    #[test]
    fn the_page_has_its_parts() {
        let mut records = records();
        records.push(Record {
            status: Status::Skipped,
            note: "cannot be had".to_owned(),
            variant: "seize".to_owned(),
            ..records[0].clone()
        });
        let page = render(&records, None);
        parsed(&page, |tree| {
            let ids: Vec<&str> = tree
                .descendants()
                .filter_map(|node| node.attribute("id"))
                .collect();
            for id in ["m1", "m1-read", "m1-raw", "published"] {
                assert!(ids.contains(&id), "{id}");
            }
            let links = tree.descendants().filter_map(|node| node.attribute("href"));
            for link in links {
                let target = link.strip_prefix('#').expect("links stay on the page");
                assert!(ids.contains(&target), "{target}");
            }
            let pictures = tree
                .descendants()
                .filter(|node| node.has_tag_name("figure"));
            // Rate, speedup and time of the sweep.
            assert_eq!(pictures.count(), 3);
            assert!(tree.descendants().all(|node| !node.has_tag_name("script")));
        });
        for words in [
            "cannot be had",
            "cannot show the knee",
            "2 sockets, 192 cores and 384 CPUs",
            "slower",
            "sd_runs",
        ] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("FAILED"));
    }

    #[test]
    fn machines_have_sections_of_their_own() {
        let mut records = records();
        for record in &mut records[..9] {
            record.set("machine", "other");
        }
        let page = render(&records, None);
        parsed(&page, |tree| {
            let sections = tree
                .descendants()
                .filter(|node| node.attribute("class") == Some("machine"));
            assert_eq!(sections.count(), 2);
        });
        assert!(page.contains("Machine 2: "));
    }
}
