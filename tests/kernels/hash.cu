// A hash table with open addressing: a power of two of slots, `none` if never used, `erased` if the key was removed.

constexpr unsigned none = 0xffff'ffffu, erased = 0xffff'fffeu;

__device__ unsigned home(unsigned key, unsigned capacity) {
    key = (key ^ key >> 16) * 0x45d9f3bu;
    key = (key ^ key >> 16) * 0x45d9f3bu;
    return (key ^ key >> 16) & (capacity - 1);
}

// The slot of the key, or of the first `none` after its home.
__device__ unsigned find_slot(const unsigned* slots, unsigned capacity, unsigned key) {
    unsigned at = home(key, capacity);
    while (slots[at] != key && slots[at] != none) at = (at + 1) & (capacity - 1);
    return at;
}

// For a key that occurs several times the greatest value is kept. Values begin as -1.
__global__ void hash_insert(unsigned* slots, int* values, unsigned capacity, const unsigned* keys,
                            const int* with, int count) {
    for (auto i : bascule::grid_stride(count)) {
        unsigned at = home(keys[i], capacity);
        for (;;) {
            const unsigned old = atomicCAS(slots + at, none, keys[i]);
            if (old == none || old == keys[i]) break;
            at = (at + 1) & (capacity - 1);
        }
        atomicMax(values + at, with[i]);
    }
}

__global__ void hash_find(const unsigned* slots, const int* values, unsigned capacity, const unsigned* keys,
                          int* found, int count) {
    for (auto i : bascule::grid_stride(count)) {
        const unsigned at = find_slot(slots, capacity, keys[i]);
        found[i] = slots[at] == none ? -1 : values[at];
    }
}

// Counts the removed keys.
__global__ void hash_erase(unsigned* slots, unsigned capacity, const unsigned* keys, int count, int* gone) {
    for (auto i : bascule::grid_stride(count)) {
        unsigned at = home(keys[i], capacity);
        for (;; at = (at + 1) & (capacity - 1)) {
            const unsigned old = atomicCAS(slots + at, keys[i], erased);
            if (old == keys[i]) atomicAdd(gone, 1);
            if (old == keys[i] || old == none) break;
        }
    }
}
