/* A profiler for tests: prints the ranges that the process pushes and pops to standard error. NVTX opens the library
 * that NVTX_INJECTION64_PATH names and calls the one function below. The needed part of NVTX's C interface, versions
 * 2 and 3, is declared here, because no wheel that the tests use has the headers. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    TABLE_OF_CALLBACKS = 1,
    MODULE_CORE2 = 5,
    DOMAIN_RANGE_PUSH = 4,
    DOMAIN_RANGE_POP = 5,
    DOMAIN_REGISTER_STRING = 10
};
enum { MESSAGE_ASCII = 1, MESSAGE_REGISTERED = 3 };

typedef void (*Function)(void);

typedef struct Callbacks {
    size_t bytes;
    int (*find_module)(uint32_t module, Function*** table, unsigned int* entries);
} Callbacks;

typedef struct Attributes {
    uint16_t version;
    uint16_t bytes;
    uint32_t category;
    int32_t colour_type;
    uint32_t colour;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const char* message;
} Attributes;

static int push(const void* domain, const Attributes* attributes) {
    (void)domain;
    const int readable =
        attributes->message_type == MESSAGE_ASCII || attributes->message_type == MESSAGE_REGISTERED;
    fprintf(stderr, "push %s\n", readable ? attributes->message : "?");
    return 0;
}

static int pop(const void* domain) {
    (void)domain;
    fprintf(stderr, "pop\n");
    return 0;
}

/* The handle of a registered string is the string itself, which is never freed. */
static const void* register_string(const void* domain, const char* text) {
    (void)domain;
    static char kept[1 << 20];
    static size_t used = 0;
    char* const copy = kept + used;
    const int length = snprintf(copy, sizeof kept - used, "%s", text);
    used += (size_t)length + 1;
    return used <= sizeof kept ? copy : "?";
}

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t table)) {
    const Callbacks* callbacks = export_table(TABLE_OF_CALLBACKS);
    Function** table = NULL;
    unsigned int entries = 0;
    if (callbacks == NULL || callbacks->find_module(MODULE_CORE2, &table, &entries) == 0) return 0;
    if (entries <= DOMAIN_REGISTER_STRING) return 0;
    *table[DOMAIN_RANGE_PUSH] = (Function)&push;
    *table[DOMAIN_RANGE_POP] = (Function)&pop;
    *table[DOMAIN_REGISTER_STRING] = (Function)&register_string;
    return 1;
}
