/* The memory layout of DLPack 1.3: what two libraries that exchange tensors agree on. For C and C++. Named
 * anew, so that it can stand beside the dlpack.h of others; a test compares the two. */
#ifndef BASCULE_DLPACK_ABI_H
#define BASCULE_DLPACK_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Equal majors: equal layouts. A higher minor may only have codes that the lower one does not know. */
typedef struct BasculeDLVersion {
    uint32_t major;
    uint32_t minor;
} BasculeDLVersion;

enum { BASCULE_DL_MAJOR = 1, BASCULE_DL_MINOR = 3 };

/* Kinds of memory. The others that DLPack numbers are refused by number. */
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
    uint16_t lanes; /* 1 but for vector types */
} BasculeDLDataType;

/* Borrows everything. */
typedef struct BasculeDLTensor {
    void* data; /* NULL where there are no elements */
    BasculeDLDevice device;
    int32_t ndim;
    BasculeDLDataType dtype;
    int64_t* shape;   /* ndim extents; may be NULL when ndim is 0 */
    int64_t* strides; /* in elements; NULL means C order (before 1.2 also when ndim is not 0) */
    uint64_t byte_offset;
} BasculeDLTensor;

/* Owned by its holder until the deleter, which frees the structure too, is called: once, on any
 * thread. A deleter may be NULL. This form knows neither versions nor flags. */
typedef struct BasculeDLManaged {
    BasculeDLTensor tensor;
    void* context;
    void (*deleter)(struct BasculeDLManaged* self);
} BasculeDLManaged;

enum {
    BASCULE_DL_READ_ONLY = 1,
    BASCULE_DL_COPIED = 2, /* no other tensor shares this memory */
    BASCULE_DL_PADDED = 4  /* elements of less than a byte have one each */
};

/* The same since 1.0. Every version keeps what stands before `tensor`. */
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

/* What a type offers by its attribute `__dlpack_c_exchange_api__`, a capsule named "dlpack_exchange_api". The
 * table lives as long as the process. Functions return 0, or -1 with a Python error set (`allocate`: told to
 * `fail`), and throw nothing. */
typedef struct BasculeDLExchange {
    BasculeDLExchangeHeader header;
    /* New memory for a tensor of the prototype's dtype, shape and device. */
    int (*allocate)(BasculeDLTensor* prototype, BasculeDLManagedVersioned** out, void* fail_context,
                    void (*fail)(void* fail_context, const char* kind, const char* message));
    /* From and to Python objects of the type; `to_object` takes the tensor over. */
    int (*managed_from_object)(void* object, BasculeDLManagedVersioned** out);
    int (*managed_to_object)(BasculeDLManagedVersioned* tensor, void** out_object);
    /* Borrows from the object: valid until it is changed or gone. May be NULL. */
    int (*tensor_from_object)(void* object, BasculeDLTensor* out);
    /* The stream on which the library's tensors may be used now. */
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out_stream);
} BasculeDLExchange;

#ifdef __cplusplus
}
#endif

#endif
