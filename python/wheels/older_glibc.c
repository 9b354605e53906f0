// Functions that the headers of a newer glibc call and that glibc 2.28 lacks, or has only slower. They are linked into
// each library of a wheel and hidden (older_libraries.py).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Before 2.33 the headers call these with the version of `struct stat`.
#if defined(__x86_64__)
enum { stat_version = 1 };
#else
enum { stat_version = 0 };
#endif
int __xstat(int version, const char* path, struct stat* result);
int __lxstat(int version, const char* path, struct stat* result);
int __fxstat(int version, int file, struct stat* result);
int __fxstatat(int version, int directory, const char* path, struct stat* result, int flags);

int stat(const char* path, struct stat* result) { return __xstat(stat_version, path, result); }
int lstat(const char* path, struct stat* result) { return __lxstat(stat_version, path, result); }
int fstat(int file, struct stat* result) { return __fxstat(stat_version, file, result); }
int fstatat(int directory, const char* path, struct stat* result, int flags) {
    return __fxstatat(stat_version, directory, path, result, flags);
}

// libstdc++ calls these. On 64-bit systems both structures are the same.
int stat64(const char* path, struct stat64* result) { return stat(path, (struct stat*)result); }
int lstat64(const char* path, struct stat64* result) { return lstat(path, (struct stat*)result); }
int fstat64(int file, struct stat64* result) { return fstat(file, (struct stat*)result); }
int fstatat64(int directory, const char* path, struct stat64* result, int flags) {
    return fstatat(directory, path, (struct stat*)result, flags);
}

pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/// libstdc++ counts references without atomic operations while this is not 0.
char __libc_single_threaded = 0;

/// Waits on the clock of the condition variable. If the system's time is set meanwhile, the wait ends early or late;
/// libstdc++ looks at `clock` again after each wait.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* deadline) {
    enum { second = 1000000000 };
    struct timespec now, real;
    if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, deadline);
    if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
    real.tv_sec += deadline->tv_sec - now.tv_sec;
    real.tv_nsec += deadline->tv_nsec - now.tv_nsec;
    if (real.tv_nsec < 0) {
        real.tv_nsec += second;
        --real.tv_sec;
    } else if (real.tv_nsec >= second) {
        real.tv_nsec -= second;
        ++real.tv_sec;
    }
    return pthread_cond_timedwait(condition, mutex, &real);
}

// `exp2` of 2.28 is a wrapper that sets errno. Newer versions have the fast one under this name too. Without a PLT the jump
// takes as long as the call of a library's function.
double __exp2_finite(double exponent);
double exp2(double exponent) { return __exp2_finite(exponent); }
double __log2_finite(double value);
double log2(double value) { return __log2_finite(value); }
