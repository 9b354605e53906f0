/* The memory layout of DLPack 1.3, by which libraries exchange tensors. For C and C++. The names differ from
 * those of dlpack.h, so that both can be included; a test compares the two. */
#ifndef BASCULE_DLPACK_ABI_H
#define BASCULE_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions with the same major number have the same layout. A higher minor number may only add codes. */
typedef struct BasculeDLVersion {
    uint32_t major;
    uint32_t minor;
} BasculeDLVersion;

enum { BASCULE_DL_MAJOR = 1, BASCULE_DL_MINOR = 3 };

/* Kinds of memory. Other kinds of DLPack are refused, with their number in the message. */
enum {
    BASCULE_DL_CPU = 1,
    BASCULE_DL_CUDA = 2,
    BASCULE_DL_CUDA_HOST = 3, /* pinned host memory */
    BASCULE_DL_CUDA_MANAGED = 13
};

typedef struct BasculeDLDevice {
    int32_t type;
    int32_t id; /* 0 for host, pinned and managed memory */
} BasculeDLDevice;

typedef struct BasculeDLDataType {
    uint8_t code;   /* what the bits mean; interface/arrays/dlpack.cpp has the table */
    uint8_t bits;   /* of one lane */
    uint16_t lanes; /* 1 except for vector types */
} BasculeDLDataType;

/* Borrows everything. */
typedef struct BasculeDLTensor {
    void* data; /* NULL if there are no elements */
    BasculeDLDevice device;
    int32_t ndim;
    BasculeDLDataType dtype;
    int64_t* shape;   /* ndim extents; may be NULL when ndim is 0 */
    int64_t* strides; /* in elements; NULL means C order (before 1.2 also when ndim is not 0) */
    uint64_t byte_offset;
} BasculeDLTensor;

/* Owned by its holder, who calls the deleter once, on any thread. The deleter also frees this structure; it may
 * be NULL. This form has neither a version nor flags. */
typedef struct BasculeDLManaged {
    BasculeDLTensor tensor;
    void* context;
    void (*deleter)(struct BasculeDLManaged* self);
} BasculeDLManaged;

enum {
    BASCULE_DL_READ_ONLY = 1,
    BASCULE_DL_COPIED = 2, /* no other tensor shares this memory */
    BASCULE_DL_PADDED = 4  /* each element smaller than a byte takes a whole byte */
};

/* Unchanged since 1.0. All versions keep the members before `tensor`. */
typedef struct BasculeDLManagedVersioned {
    BasculeDLVersion version;
    void* context;
    void (*deleter)(struct BasculeDLManagedVersioned* self);
    uint64_t flags;
    BasculeDLTensor tensor;
} BasculeDLManagedVersioned;

typedef struct BasculeDLExchangeHeader {
    BasculeDLVersion version;
    struct BasculeDLExchangeHeader* previous; /* the table of an older version, or NULL */
} BasculeDLExchangeHeader;

/* The functions of a tensor type; its attribute `__dlpack_c_exchange_api__` is a capsule named
 * "dlpack_exchange_api" with a pointer to this table, which lives as long as the process. Functions return 0,
 * or -1 with a Python error set (`allocate` reports the error to `fail`), and throw nothing. */
typedef struct BasculeDLExchange {
    BasculeDLExchangeHeader header;
    /* New memory for a tensor of the prototype's dtype, shape and device. */
    int (*allocate)(BasculeDLTensor* prototype, BasculeDLManagedVersioned** out, void* fail_context,
                    void (*fail)(void* fail_context, const char* kind, const char* message));
    /* Convert from and to Python objects of the type; `managed_to_object` takes ownership of the tensor. */
    int (*managed_from_object)(void* object, BasculeDLManagedVersioned** out);
    int (*managed_to_object)(BasculeDLManagedVersioned* tensor, void** out_object);
    /* Borrows from the object: valid until the object is changed or destroyed. May be NULL. */
    int (*tensor_from_object)(void* object, BasculeDLTensor* out);
    /* The stream on which the library's tensors may be used now. */
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out_stream);
} BasculeDLExchange;

#ifdef __cplusplus
}
#endif

#endif
