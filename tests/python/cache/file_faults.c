/* Makes one of the file calls of Bascule's extension module fail, end the process or wait. Preloaded into the worker
   of faults.py, which controls it with ctypes, so that the shipped module is tested without a hook in it.

   A call counts if the module itself makes it, on a path that begins with the watched prefix or on a descriptor that
   such a call opened; others are passed through. Calls are numbered from 0 since `faults_arm`. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CALLS = 65536, MOST_DESCRIPTORS = 65536 };
enum fault { NOTHING, FAIL, RETURN_ZERO, KILL_BEFORE, KILL_AFTER, WRITE_HALF_AND_KILL, WAIT };

static char watched[4096];
static bool tracked[MOST_DESCRIPTORS];
static const char* names[MOST_CALLS];
static long calls, armed_at = -1, armed_count;
static enum fault armed;
static int armed_error;
static long clock_offset;
static sem_t reached, released;

void faults_watch(const char* prefix) { snprintf(watched, sizeof watched, "%s", prefix); }

/* `fault` applies to the call numbered `at`, and to later ones of the same name until it has occurred `count` times. */
void faults_arm(long at, int fault, int error, long count) {
    armed = NOTHING;
    calls = 0;
    armed_at = at;
    armed_error = error;
    armed_count = count;
    sem_init(&reached, 0, 0);
    sem_init(&released, 0, 0);
    armed = fault;
}
long faults_calls(void) { return calls; }
const char* faults_name(long call) { return call < calls && call < MOST_CALLS ? names[call] : NULL; }
/* faults_wait waits for the call armed with WAIT, or for faults_reached. faults_release lets that call continue. */
void faults_wait(void) {
    while (sem_wait(&reached) != 0) continue;
}
void faults_reached(void) { sem_post(&reached); }
void faults_release(void) { sem_post(&released); }
/* Sets by how many seconds the module's clock is ahead. */
void faults_set_clock(long seconds) { clock_offset = seconds; }

static bool is_ours(void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
           strstr(info.dli_fname, "/_bascule.") != NULL;
}

static bool is_watched(const char* path) {
    return watched[0] != 0 && strncmp(path, watched, strlen(watched)) == 0;
}
static bool is_tracked(int file) { return file >= 0 && file < MOST_DESCRIPTORS && tracked[file]; }
static int track(int file) {
    if (file >= 0 && file < MOST_DESCRIPTORS) tracked[file] = true;
    return file;
}

/* Counts the call, and returns its fault. Kills the process here for KILL_BEFORE, and waits here for WAIT. */
static enum fault next(const char* name) {
    const long call = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (call < MOST_CALLS) names[call] = name;
    if (armed == NOTHING || armed_at < 0 || armed_count <= 0 || call < armed_at) return NOTHING;
    if (call > armed_at && strcmp(names[armed_at], name) != 0) return NOTHING;
    --armed_count;
    if (armed == KILL_BEFORE) kill(getpid(), SIGKILL);
    if (armed == WAIT) {
        sem_post(&reached);
        while (sem_wait(&released) != 0) continue;
        return NOTHING;
    }
    if (armed == FAIL) errno = armed_error;
    return armed;
}

static void after(enum fault fault) {
    if (fault == KILL_AFTER || fault == WRITE_HALF_AND_KILL) kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))real(#name))
static void* real(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

/* Defines a function of the C library that returns -1 and sets errno when it fails. */
#define REPLACE(name, parameters, arguments, condition)                                         \
    int name parameters {                                                                       \
        if (!(condition) || !is_ours(__builtin_return_address(0))) return REAL(name) arguments; \
        const enum fault fault = next(#name);                                                   \
        if (fault == FAIL) return -1;                                                           \
        const int result = REAL(name) arguments;                                                \
        after(fault);                                                                           \
        return result;                                                                          \
    }

REPLACE(stat, (const char* restrict path, struct stat* restrict status), (path, status), is_watched(path))
REPLACE(lstat, (const char* restrict path, struct stat* restrict status), (path, status), is_watched(path))
REPLACE(fstat, (int file, struct stat* status), (file, status), is_tracked(file))
REPLACE(fstatat, (int directory, const char* restrict path, struct stat* restrict status, int flags),
        (directory, path, status, flags), is_tracked(directory))
REPLACE(mkdir, (const char* path, mode_t mode), (path, mode), is_watched(path))
REPLACE(renameat, (int from, const char* old, int to, const char* new), (from, old, to, new),
        is_tracked(from))
REPLACE(unlinkat, (int directory, const char* path, int flags), (directory, path, flags),
        is_tracked(directory))
REPLACE(utimensat, (int directory, const char* path, const struct timespec times[2], int flags),
        (directory, path, times, flags), is_tracked(directory))

/* A close that fails has still closed the descriptor. */
int close(int file) {
    const bool counts = is_tracked(file) && is_ours(__builtin_return_address(0));
    if (is_tracked(file)) tracked[file] = false;
    const enum fault fault = counts ? next("close") : NOTHING;
    const int error = errno;
    const int result = REAL(close)(file);
    after(fault);
    if (fault != FAIL) return result;
    errno = error;
    return -1;
}

static mode_t mode_of(int flags, va_list* rest) { return (flags & O_CREAT) != 0 ? va_arg(*rest, mode_t) : 0; }

int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, &rest);
    va_end(rest);
    if (!is_watched(path) || !is_ours(__builtin_return_address(0))) return REAL(open)(path, flags, mode);
    const enum fault fault = next("open");
    if (fault == FAIL) return -1;
    const int file = track(REAL(open)(path, flags, mode));
    after(fault);
    return file;
}

int openat(int directory, const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, &rest);
    va_end(rest);
    if (!is_tracked(directory) || !is_ours(__builtin_return_address(0)))
        return REAL(openat)(directory, path, flags, mode);
    const enum fault fault = next("openat");
    if (fault == FAIL) return -1;
    const int file = track(REAL(openat)(directory, path, flags, mode));
    after(fault);
    return file;
}

ssize_t read(int file, void* bytes, size_t count) {
    if (!is_tracked(file) || !is_ours(__builtin_return_address(0))) return REAL(read)(file, bytes, count);
    const enum fault fault = next("read");
    if (fault == FAIL || fault == RETURN_ZERO) return fault == FAIL ? -1 : 0;
    const ssize_t result = REAL(read)(file, bytes, count);
    after(fault);
    return result;
}

ssize_t write(int file, const void* bytes, size_t count) {
    if (!is_tracked(file) || !is_ours(__builtin_return_address(0))) return REAL(write)(file, bytes, count);
    const enum fault fault = next("write");
    if (fault == FAIL || fault == RETURN_ZERO) return fault == FAIL ? -1 : 0;
    const ssize_t result = REAL(write)(file, bytes, fault == WRITE_HALF_AND_KILL ? count / 2 : count);
    after(fault);
    return result;
}

DIR* fdopendir(int file) {
    if (!is_tracked(file) || !is_ours(__builtin_return_address(0))) return REAL(fdopendir)(file);
    const enum fault fault = next("fdopendir");
    if (fault == FAIL) return NULL;
    DIR* directory = REAL(fdopendir)(file);
    after(fault);
    return directory;
}

struct dirent* readdir(DIR* directory) {
    if (!is_tracked(dirfd(directory)) || !is_ours(__builtin_return_address(0)))
        return REAL(readdir)(directory);
    const enum fault fault = next("readdir");
    if (fault == FAIL) return NULL;
    struct dirent* entry = REAL(readdir)(directory);
    after(fault);
    return entry;
}

int closedir(DIR* directory) {
    const int file = dirfd(directory);
    if (is_tracked(file)) tracked[file] = false;
    return REAL(closedir)(directory);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
    const int result = REAL(clock_gettime)(clock, time);
    if (clock_offset != 0 && clock == CLOCK_REALTIME && is_ours(__builtin_return_address(0)))
        time->tv_sec += clock_offset;
    return result;
}
