/* The emulated device's own C functions, beside the CUDA driver's: what the driver API cannot say.
 * A program that has loaded the library finds them with dlsym; a real driver has none of them.
 * Thread-safe, all of them. Strings are UTF-8 and NUL-terminated. */
#ifndef BASCULE_EMULATED_ABI_H
#define BASCULE_EMULATED_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; a library of another version is refused. Who has asked is expected to ask for reports too: with
 * BASCULE_EMULATED_REPORTS=1 the device writes to stderr what nobody asks for. */
#define BASCULE_EMULATED_ABI 7
uint32_t bascule_emulated_abi(void);

/* Why a call failed last, in any thread: several lines, ends without a newline. Empty when none did.
 * Copies at most `capacity` bytes with the NUL and returns the length without it. */
size_t bascule_emulated_last_report(char* text, size_t capacity);

/* The newest fault that a context was lost by, as a JSON object; an empty one when there was none. Copied as above.
 *   "report"  as above
 * and where a kernel has failed, not another operation such as a copy:
 *   "kernel"  its name, demangled
 *   "lacks"   what it needed and its launch did not give: "shared bytes" (dynamic shared memory), "cooperation"
 *             (CU_LAUNCH_ATTRIBUTE_COOPERATIVE), or ""
 *   "stream"  the handle as the launch gave it
 *   "site"    of bascule_emulated_next_site; 0 when there was none */
size_t bascule_emulated_last_fault(char* json, size_t capacity);

/* Where the calling thread writes a number of the program's own for its next launch, which takes it and leaves 0.
 * Valid until the thread ends. */
uint64_t* bascule_emulated_next_site(void);

/* Operations in the order in which the host issued them. */
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
    uint64_t stream; /* the handle as the caller gave it: 1 and 2 stay 1 and 2, NULL is 0 */
    uint64_t event;  /* handle, 0 when none */
    uint64_t bytes;  /* of a copy, fill or allocation */
    char name[96];   /* the kernel's or the driver function's, cut to fit */
} BasculeEmulatedOperation;

/* Starts (1) or stops (0) recording; starting empties the trace. */
void bascule_emulated_trace(int on);
/* Copies at most `capacity` operations and returns how many there are. */
size_t bascule_emulated_trace_read(BasculeEmulatedOperation* out, size_t capacity);

/* Where the calling thread writes a number, not 0, under which its next launch, copy, fill or graph launch keeps when it
 * runs; the operation takes it and leaves 0. What is captured does not run and keeps nothing. Valid until the thread
 * ends. */
uint64_t* bascule_emulated_next_timer(void);
/* When that operation began and ended, a graph with all of its operations, in nanoseconds of CLOCK_MONOTONIC: 1, and the
 * times are forgotten; 0 when it has not run. The times mean nothing for a GPU. */
int bascule_emulated_take_times(uint64_t number, int64_t* begin, int64_t* end);

/* What reports say after "the 64-byte allocation", for example "made at train.py:12"; `name` is copied.
 * Unknown addresses are ignored. */
void bascule_emulated_name_allocation(uint64_t address, const char* name);

/* While on (1), the calling thread's operations are bookkeeping: no trace shows them and
 * bascule_emulated_drop does not count them. */
void bascule_emulated_bookkeeping(int on);

/* The host has waited until the memory at `address` was allocated in the order of its stream: the search for races asks for
 * no order after that any more. */
void bascule_emulated_allocated(uint64_t address);

/* What has used the memory that begins at `address` is done, also where the search for races cannot tell. */
void bascule_emulated_unused(uint64_t address);

/* From now on the records and waits of all threads are counted from 0 in the order of issue, and the one with
 * this number is forgotten: the call succeeds and does nothing. UINT64_MAX (the default) forgets none.
 * Returns how many were counted since the last call. For tests that leave a wait out. */
uint64_t bascule_emulated_drop(uint64_t number);

/* What is looked for beside faults; the environment variable BASCULE_EMULATED_CHECKS says it for the start.
 */
enum {
    BASCULE_EMULATED_CHECK_RACES =
        1, /* operations on different streams that touch the same bytes unordered */
    BASCULE_EMULATED_CHECK_LEAKS =
        2 /* memory that kernels allocate: listed on stderr when its context ends */
};
/* Sets what is looked for, in every context, and returns what was. Operations that were issued before are not
 * known: switch on where nothing is pending. */
uint32_t bascule_emulated_set_checks(uint32_t checks);
uint32_t bascule_emulated_checks(void);

/* Says where in the caller's own program an operation is issued, for example "train.py:12: k[1, 32](x)":
 * writes at most `capacity` bytes with the NUL. Asked in the thread that issues, only while races are looked
 * for, with no lock held. NULL (the default): reports name no places. */
typedef void (*BasculeEmulatedSite)(char* text, size_t capacity);
void bascule_emulated_set_site(BasculeEmulatedSite site);

/* Takes the races found so far: a JSON array with a report of several lines for each. Copies at most `capacity` bytes with
 * the NUL and returns the length without it; they are forgotten only when they fit. Races of operations that have not run
 * yet are not found yet. */
size_t bascule_emulated_take_races(char* json, size_t capacity);

/* What kernels allocated with malloc or new, in every context, and nothing has freed: a JSON array with an object for
 * each line that did so, of its "kernel", its "place" (line 7 of k.cu), the "count" of
 * allocations and their "bytes". Copied as above. */
size_t bascule_emulated_leaks(char* json, size_t capacity);

/* What the search for races did since the process started; silence counts only where these grow. */
typedef struct BasculeEmulatedRaceStatistics {
    uint64_t nodes; /* operations watched: launches, copies, fills, frees in stream order */
    uint64_t edges; /* orders between them: streams, waits, synchronisations */
    uint64_t bytes; /* bytes accessed by one operation and compared with the others' */
    uint64_t races; /* found */
} BasculeEmulatedRaceStatistics;
void bascule_emulated_race_statistics(BasculeEmulatedRaceStatistics* out);

/* Asked about every 100 ms, with no lock held, by a thread inside a driver function that runs a kernel or waits for
 * one. Not 0 ends what it waits for, and is the answer until the function has returned. A kernel that runs inside
 * the function that launched it ends alone: that function returns CUDA_ERROR_TIMEOUT. Otherwise everything that is
 * pending in any context is dropped, and those contexts have the error CUDA_ERROR_LAUNCH_TIMEOUT. The function may
 * not call the driver. NULL (the default): nothing is asked. */
typedef int (*BasculeEmulatedInterrupt)(void);
void bascule_emulated_set_interrupt(BasculeEmulatedInterrupt interrupt);

/* Gets what device printf writes, instead of standard output: one call of printf at a time, `length` bytes with no NUL at
 * their end. Called while kernels run, by any thread and by several at once; it may not call the driver. NULL (the
 * default): standard output. */
typedef void (*BasculeEmulatedPrint)(const char* text, size_t length);
void bascule_emulated_set_print(BasculeEmulatedPrint print);

/* The device is as after a restart of the process, but that contexts, streams, events, code and its variables go on, and
 * so does host memory: what is pending is dropped, errors are forgotten, and device memory that was allocated is lost.
 * Calls that are given a lost address return CUDA_ERROR_CONTEXT_IS_DESTROYED, with a report; so do launches of graphs
 * that were captured before. Lost memory is freed as ever. Not to be called while another thread resets the device. */
void bascule_emulated_reset(int device);

/* The process is about to end. What is pending has so many milliseconds left (0: is left pending), then it is dropped as
 * bascule_emulated_set_interrupt says. From now on frees and unloads succeed and do nothing, because they would wait. */
void bascule_emulated_end(uint32_t milliseconds);

/* Calls since the process started that make a driver wait for all work of the context, or keep streams from overtaking
 * each other, beside what they are for: allocations and frees of device, pinned and managed memory that is in no pool
 * (the programming guide's "implicit synchronization"). */
uint64_t bascule_emulated_implicit_synchronizations(void);

/* The clock of timing events jumps ahead, as if that long had passed on the devices. For tests. */
void bascule_emulated_advance_clock(int64_t nanoseconds);

/* Calls of the exported driver functions since the process started, by name; 0 for a name that is not
 * exported. */
uint64_t bascule_emulated_call_count(const char* driver_function);

#ifdef __cplusplus
}
#endif
#endif
