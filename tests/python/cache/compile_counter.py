"""The C source of a library to preload, which counts the calls of nvrtcCompileProgram."""

SOURCE = r"""
/* Counts real calls of nvrtcCompileProgram from all libraries: preloaded, it hands out its own function for that
   name when dlsym is asked, and writes the count to the file named by COMPILE_COUNTER when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*compile_function)(void*, int, const char* const*);

static compile_function real_compile;
static unsigned long calls;

static int counted_compile(void* program, int count, const char* const* options) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    return real_compile(program, count, options);
}

void* dlsym(void* handle, const char* name) {
    static void* (*real_dlsym)(void*, const char*);
    if (real_dlsym == NULL) real_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (real_dlsym == NULL) real_dlsym = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    void* found = real_dlsym(handle, name);
    if (found == NULL || strcmp(name, "nvrtcCompileProgram") != 0) return found;
    real_compile = (compile_function)found;
    return (void*)counted_compile;
}

__attribute__((destructor)) static void report(void) {
    const char* path = getenv("COMPILE_COUNTER");
    FILE* file = path == NULL ? NULL : fopen(path, "w");
    if (file == NULL) return;
    fprintf(file, "%lu", calls);
    fclose(file);
}
"""
