/*
 * Floor 3, bench-suite. Owns the calls into liburcu that must be compiled in C: its read side is inline code of its
 * headers. May touch the public API of liburcu and nothing of Rust.
 *
 * Compiled once a flavour: the build defines one of FLAVOUR_MEMB, FLAVOUR_QSBR and FLAVOUR_BP. The one name that
 * leaves this file, that of a table of functions, carries the flavour, so that the three live in one program. The table
 * is that of `flavours.rs`.
 */

/* Asks the headers for inline read-side functions. Their licence wants the program that does so to be under one that is
 * compatible with the LGPL; MIT and Apache-2.0 are. */
#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS

#include <stdint.h>

#if defined(FLAVOUR_MEMB)
#include <urcu/urcu-memb.h>
#define F(name) urcu_memb_##name
#define TABLE hpbench_memb
#elif defined(FLAVOUR_QSBR)
#include <urcu/urcu-qsbr.h>
#define F(name) urcu_qsbr_##name
#define TABLE hpbench_qsbr
#elif defined(FLAVOUR_BP)
#include <urcu/urcu-bp.h>
#define F(name) urcu_bp_##name
#define TABLE hpbench_bp
#else
#error "no flavour"
#endif

#include <urcu/pointer.h>

struct shim {
	void (*enter)(void);
	void (*leave)(void);
	void (*offline)(void);
	void (*online)(void);
	uint64_t (*read_batch)(char *const *cell, uintptr_t offset, uint64_t alive, uint64_t count);
	void *(*lock)(char *const *cell);
	void (*unlock)(void);
	void (*synchronize)(void);
	void (*call)(struct rcu_head *head, void (*run)(struct rcu_head *head));
	void (*barrier)(void);
};

/* Ends the protection of one operation where unlocking does not. */
static inline void ended(void)
{
#if defined(FLAVOUR_QSBR)
	F(quiescent_state)();
#endif
}

static void enter(void)
{
#if !defined(FLAVOUR_BP) /* bp registers by itself. */
	F(register_thread)();
#endif
}

static void leave(void)
{
#if !defined(FLAVOUR_BP)
	F(unregister_thread)();
#endif
}

static void offline(void)
{
#if defined(FLAVOUR_QSBR)
	F(thread_offline)();
#endif
}

static void online(void)
{
#if defined(FLAVOUR_QSBR)
	F(thread_online)();
#endif
}

/* `count` times: lock, dereference, compare the word at `offset` in the object with `alive`, unlock. Returns how many
 * differed. */
static uint64_t read_batch(char *const *cell, uintptr_t offset, uint64_t alive, uint64_t count)
{
	uint64_t dead = 0;

	for (uint64_t i = 0; i < count; i++) {
		F(read_lock)();
		char *object = rcu_dereference(*cell);
		dead += CMM_LOAD_SHARED(*(uint64_t *)(object + offset)) != alive;
		F(read_unlock)();
		ended();
	}
	return dead;
}

/* For holds: the object stays until `unlock`. */
static void *lock(char *const *cell)
{
	F(read_lock)();
	return rcu_dereference(*cell);
}

static void unlock(void)
{
	F(read_unlock)();
	ended();
}

static void synchronize(void)
{
	F(synchronize_rcu)();
}

static void call(struct rcu_head *head, void (*run)(struct rcu_head *head))
{
	F(call_rcu)(head, run);
	ended();
}

static void barrier(void)
{
	F(barrier)();
}

extern const struct shim TABLE;
const struct shim TABLE = {
	.enter = enter,
	.leave = leave,
	.offline = offline,
	.online = online,
	.read_batch = read_batch,
	.lock = lock,
	.unlock = unlock,
	.synchronize = synchronize,
	.call = call,
	.barrier = barrier,
};
