/* C functions that the emulated device has in addition to those of the CUDA driver.
 * A program that has loaded the library finds them with dlsym. A real driver does not have them.
 * All are thread-safe. Strings are UTF-8 and NUL-terminated. */
#ifndef BASCULE_EMULATED_ABI_H
#define BASCULE_EMULATED_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; clients refuse a library of another version. A client that calls this is expected to read
 * reports. If no client does, the device prints them to stderr with BASCULE_EMULATED_REPORTS=1. */
#define BASCULE_EMULATED_ABI 9
uint32_t bascule_emulated_abi(void);

/* The report of the last failed call in any thread: several lines without a trailing newline; empty if no call failed.
 * Copies at most `capacity` bytes with the NUL and returns the length without it. */
size_t bascule_emulated_last_report(char* text, size_t capacity);

/* The newest fault that made a context unusable, as a JSON object; an empty object if there was none. Copied as above.
 *   "report"  as above
 * and if a kernel failed, and not another operation such as a copy:
 *   "kernel"  its name, demangled
 *   "lacks"   what it needed and its launch did not provide: "shared bytes" (dynamic shared memory), "cooperation"
 *             (CU_LAUNCH_ATTRIBUTE_COOPERATIVE), or ""
 *   "stream"  the handle that was passed to the launch
 *   "site"    the number from bascule_emulated_next_site; 0 if there was none */
size_t bascule_emulated_last_fault(char* json, size_t capacity);

/* Returns a variable of the calling thread, valid until the thread ends. The program may write a number of its own to it;
 * the thread's next launch reads the number and resets it to 0. */
uint64_t* bascule_emulated_next_site(void);

/* An array that a launch passes as a pointer. */
typedef struct BasculeEmulatedArray {
    uint32_t parameter; /* its index, from 0 */
    uint32_t itemsize;  /* of an element; 0: unknown */
    uint64_t first;     /* the address of its first byte */
    uint64_t bytes;
    const char* name; /* of the parameter; NULL or "": unknown */
} BasculeEmulatedArray;
/* Gives the calling thread's next launch its arrays, for checks and their reports. Copies them. Parameters that it does not
 * list are not known to be arrays. */
void bascule_emulated_next_arrays(const BasculeEmulatedArray* arrays, size_t count);

/* The kinds of operations in a trace, which lists them in the order in which the host issued them. */
enum {
    BASCULE_EMULATED_RECORD = 1, /* cuEventRecord: event, stream */
    BASCULE_EMULATED_WAIT = 2,   /* cuStreamWaitEvent: event, stream */
    BASCULE_EMULATED_LAUNCH = 3, /* a kernel launch: stream, name */
    BASCULE_EMULATED_COPY = 4,
    BASCULE_EMULATED_FILL = 5,
    BASCULE_EMULATED_ALLOCATE = 6,
    BASCULE_EMULATED_FREE = 7,
    BASCULE_EMULATED_SYNCHRONIZE = 8, /* stream, event or context */
    BASCULE_EMULATED_CREATE = 9,      /* a stream, event, library or context */
    BASCULE_EMULATED_DESTROY = 10,
    BASCULE_EMULATED_HOST_FUNCTION = 11,
    BASCULE_EMULATED_GRAPH_LAUNCH = 12 /* cuGraphLaunch: stream */
};

typedef struct BasculeEmulatedOperation {
    uint32_t kind;
    int32_t device;
    uint64_t stream; /* the handle that the caller passed: 1 and 2 stay 1 and 2, NULL is 0 */
    uint64_t event;  /* handle, or 0 */
    uint64_t bytes;  /* of a copy, fill or allocation */
    char name[96];   /* of the kernel or the driver function, truncated */
} BasculeEmulatedOperation;

/* Starts (1) or stops (0) recording; starting empties the trace. */
void bascule_emulated_trace(int on);
/* Copies at most `capacity` operations and returns how many there are. */
size_t bascule_emulated_trace_read(BasculeEmulatedOperation* out, size_t capacity);

/* Returns a variable of the calling thread, valid until the thread ends. If the program writes a nonzero number to it, the
 * thread's next launch, copy, fill or graph launch records its times under that number and resets the variable to 0.
 * Captured operations record nothing. */
uint64_t* bascule_emulated_next_timer(void);
/* Gets when the operation with this number began and ended, in nanoseconds of CLOCK_MONOTONIC; a graph counts as one
 * operation. Returns 1 and discards the times, or returns 0 if it has not run. The times say nothing about a GPU. */
int bascule_emulated_take_times(uint64_t number, int64_t* begin, int64_t* end);

/* Sets the text that reports print after "the 64-byte allocation", for example "made at train.py:12". Copies `name`.
 * Ignores unknown addresses. */
void bascule_emulated_name_allocation(uint64_t address, const char* name);

/* While on (1), the calling thread's operations are internal: they do not appear in traces, and
 * bascule_emulated_drop does not count them. */
void bascule_emulated_bookkeeping(int on);

/* Tells the search for races that the host has waited for the stream-ordered allocation at `address`, so later uses need no
 * order after the allocation. */
void bascule_emulated_allocated(uint64_t address);

/* Tells the search for races that everything that used the memory at `address` is complete. */
void bascule_emulated_unused(uint64_t address);

/* Counts event records and waits for events in all threads, from 0 in the order of issue, and drops the one with this
 * number: the call succeeds and does nothing. UINT64_MAX (the default) drops no call.
 * Returns how many were counted since the last call. For tests that omit a wait. */
uint64_t bascule_emulated_drop(uint64_t number);

/* Optional checks, one bit each. BASCULE_EMULATED_CHECKS sets the initial ones. */
enum {
    BASCULE_EMULATED_CHECK_RACES =
        1, /* operations on different streams that access the same bytes unordered */
    BASCULE_EMULATED_CHECK_LEAKS =
        2 /* memory that kernels allocate and do not free: listed on stderr when the context ends */
};
/* The names of all checks in the order of their bits, separated by commas: "races,leaks,init,...". */
const char* bascule_emulated_check_names(void);
/* Gets the checks of a list such as "init,races": names separated by commas, "memory" (none of the optional ones) or "all".
 * Returns 1, or 0 if a name is unknown. */
int bascule_emulated_find_checks(const char* list, uint32_t* checks);
/* Sets the checks for all contexts and returns the previous ones. Operations issued before are not checked, so switch
 * checks on while nothing is pending. A device that does not execute kernels checks only leaks. */
uint32_t bascule_emulated_set_checks(uint32_t checks);
uint32_t bascule_emulated_checks(void);

/* Gets what the checks of kernels found so far: a JSON array with an object for each place in a kernel. Copied as
 * bascule_emulated_take_races does it.
 *   "kind"       the name of the check
 *   "report"     several lines of text
 *   "kernel"     its name, demangled
 *   "what"       what the thread did: "divided an integer by zero"
 *   "file", "line", "ptx_line", "caller_file", "caller_line"
 *                the source line, and for inlined code the line that calls it; 0 if unknown
 *   "block", "thread"
 *                three numbers each: the first thread that did so
 *   "count"      the number of times that a thread did so, in all launches since the last call
 *   "address", "bytes", "space"
 *                the access; 0 if there is none. In shared memory the address is the number of the byte
 *   "other"      null, or the other side of a race: "what", "file", "line", "ptx_line", "block", "thread", ...
 *   "advice"     what to write instead, or ""
 *   "stream"     the handle that was passed to the launch
 *   "site"       the number from bascule_emulated_next_site; 0 if there was none
 *   "arguments"  for each parameter of the kernel its value if it points into the allocation of the access, or 0 */
size_t bascule_emulated_take_findings(char* json, size_t capacity);

/* Starts (1) or stops (0) the profile of kernels; starting empties it. It counts the launches that run while it is started,
 * also those of graphs. Such launches run on one thread. */
void bascule_emulated_profile(int on);
/* Gets the profile: a JSON array with an object for each kernel. Copied as bascule_emulated_last_report does it.
 *   "kernel"    its name, demangled; kernels of the same name are one
 *   "launches"  their number
 *   "lines"     an object for each line of the source whose code was executed:
 *     "file", "line", "caller_file", "caller_line"
 *               the line, and for inlined code the line that calls it; 0 if unknown
 *     "counts"  an object of numbers, by the names of the counters (BASCULE_COUNTERS in checks/profile.hpp) */
size_t bascule_emulated_profile_read(char* json, size_t capacity);

/* A callback that writes where the caller's own program issues an operation, for example "train.py:12: k[1, 32](x)": at most
 * `capacity` bytes with the NUL. Called in the issuing thread, with no lock held, and only during a search for races.
 * NULL (the default): reports do not name places. */
typedef void (*BasculeEmulatedSite)(char* text, size_t capacity);
void bascule_emulated_set_site(BasculeEmulatedSite site);

/* Gets the races found so far: a JSON array with a report of several lines for each. Copies at most `capacity` bytes with
 * the NUL and returns the length without it. The races are discarded only if they fit. Races of operations that have not
 * run yet are not included. */
size_t bascule_emulated_take_races(char* json, size_t capacity);

/* The memory that kernels of all contexts allocated with malloc or new and did not free: a JSON array with an object for
 * each allocating line, with its "kernel", its "place" (line 7 of k.cu), the "count" of allocations and their "bytes".
 * Copied as above. */
size_t bascule_emulated_leaks(char* json, size_t capacity);

/* What the search for races has checked since the process started. If these numbers do not grow, nothing was checked. */
typedef struct BasculeEmulatedRaceStatistics {
    uint64_t nodes; /* watched operations: launches, copies, fills, stream-ordered frees */
    uint64_t edges; /* dependencies between them: streams, waits, synchronisations */
    uint64_t bytes; /* bytes that operations accessed and that were compared */
    uint64_t races; /* races found */
} BasculeEmulatedRaceStatistics;
void bascule_emulated_race_statistics(BasculeEmulatedRaceStatistics* out);

/* A callback that a thread inside a driver function calls about every 100 ms, with no lock held, while it runs a kernel or
 * waits for one. A nonzero result interrupts the function. If the kernel runs inside the function that launched it,
 * only that kernel ends, and the function returns CUDA_ERROR_TIMEOUT. Otherwise all pending work of all contexts is
 * dropped, and those contexts fail with CUDA_ERROR_LAUNCH_TIMEOUT. The callback may not call the driver. NULL (the
 * default): functions are not interrupted. */
typedef int (*BasculeEmulatedInterrupt)(void);
void bascule_emulated_set_interrupt(BasculeEmulatedInterrupt interrupt);

/* A callback for the output of device printf: the text of one printf call, `length` bytes without a NUL. Called while
 * kernels run, by any thread and concurrently. It may not call the driver. NULL (the default): standard output. */
typedef void (*BasculeEmulatedPrint)(const char* text, size_t length);
void bascule_emulated_set_print(BasculeEmulatedPrint print);

/* Resets the device: pending work is dropped, errors are cleared, and allocated device memory is lost. Contexts, streams,
 * events, code, its variables and host memory stay valid. Calls with a lost address return
 * CUDA_ERROR_CONTEXT_IS_DESTROYED with a report; so do launches of graphs from before the reset. Lost memory is freed as
 * usual. Must not be called while another thread resets the device. */
void bascule_emulated_reset(int device);

/* Announces the end of the process. Pending work may run for `milliseconds` and is then dropped as for
 * bascule_emulated_set_interrupt; with 0 it is left pending. From now on frees and unloads succeed and do nothing, because
 * they would wait. */
void bascule_emulated_end(uint32_t milliseconds);

/* The number of calls since the process started with an "implicit synchronization" in the sense of the programming guide:
 * allocations and frees of device, pinned and managed memory outside pools. A driver may make them wait for all work of
 * the context, or order streams by them. */
uint64_t bascule_emulated_implicit_synchronizations(void);

/* Advances the clock of timing events, as if this time had passed on the devices. For tests. */
void bascule_emulated_advance_clock(int64_t nanoseconds);

/* The number of calls of an exported driver function since the process started; 0 for a name that is not exported. */
uint64_t bascule_emulated_call_count(const char* driver_function);

#ifdef __cplusplus
}
#endif
#endif
