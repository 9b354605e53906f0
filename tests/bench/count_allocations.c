/* Counts the heap allocations of the process that it is preloaded into (LD_PRELOAD). C++'s operator new and, with
 * PYTHONMALLOC=malloc, all Python objects use this heap. */
#include <stddef.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);

static unsigned long count;

unsigned long bascule_allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

void* malloc(size_t bytes) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void* calloc(size_t number, size_t bytes) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_calloc(number, bytes);
}

void* realloc(void* old, size_t bytes) {
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, bytes);
}
