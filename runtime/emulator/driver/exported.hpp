// Macros that define the functions of the driver's C interface. Each is exported, counts its calls, runs under the driver's
// lock and lets no exception escape.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

#include <cuda.h>
#include <cudaTypedefs.h>

#include "driver/listed_functions.hpp"
#include "streams/driver_lock.hpp"

namespace emulated::driver {

template <class... Parameters>
std::tuple<Parameters...> parameters_of(void (*)(Parameters...));

/// The type of a function's parameter at `Index`.
template <std::size_t Index, auto Body>
using Parameter = std::tuple_element_t<Index, decltype(parameters_of(Body))>;

namespace detail {
inline std::atomic<std::uint64_t> resets{0};
inline std::atomic<bool> resetting{false};
inline thread_local constinit bool resets_here = false;  // calls of the resetting thread do not wait
inline thread_local constinit std::uint64_t resets_before_call = 0;
inline thread_local constinit bool null_is_per_thread = false;
}  // namespace detail

/// The number of device resets (bascule_emulated_reset) before the calling thread's present call. A later reset drops what
/// the call enqueues, even if it is enqueued after the reset.
inline std::uint64_t resets_before_call() noexcept { return detail::resets_before_call; }

/// One call of the driver. It starts before a reset or after it; it waits while one is running.
class CallTime {
  public:
    CallTime() noexcept {
        if (detail::resetting.load(std::memory_order_acquire) && !detail::resets_here)
            detail::resetting.wait(true);
        detail::resets_before_call = detail::resets.load(std::memory_order_acquire);
    }
    ~CallTime() { detail::resets_before_call = outer_; }
    CallTime(CallTime&&) = delete;

  private:
    std::uint64_t outer_ = detail::resets_before_call;
};

/// Stores `report`, which may be empty, in place of an earlier error's report, and returns CUDA_ERROR_OUT_OF_MEMORY.
CUresult out_of_memory(const std::string& report = {}) noexcept;

/// Copies at most `capacity` bytes with the NUL. Returns the length without it.
std::size_t copy_text(const std::string& from, char* text, std::size_t capacity) noexcept;

/// The state check of functions that need nothing before they look at their arguments.
inline CUresult always() noexcept { return CUDA_SUCCESS; }

/// The `_ptsz` or `_ptds` variant of an exported function. While it runs, NULL is the calling thread's own stream.
template <auto Original>
struct PerThread;
template <class... Arguments, CUresult(CUDAAPI* Original)(Arguments...)>
struct PerThread<Original> {
    static CUresult CUDAAPI call(Arguments... arguments) {
        detail::null_is_per_thread = true;
        const CUresult result = Original(arguments...);  // throws nothing
        detail::null_is_per_thread = false;
        return result;
    }
};

template <auto Original>
constexpr auto per_thread = &PerThread<Original>::call;
template <auto Original>
constexpr auto same = Original;

/// An exported function in one version of its ABI, for cuGetProcAddress. All entries form a list that grows while the
/// library is loaded.
struct EntryPoint {
    using Function = void (*)();

    /// `Type` is the function's type in <cudaTypedefs.h>. A call does not compile if the signature differs from this
    /// version's.
    template <class Type>
    static EntryPoint of(std::string_view name, int version, Type pointer, Type for_threads) noexcept {
        return {name, version, reinterpret_cast<Function>(pointer), reinterpret_cast<Function>(for_threads)};
    }
    EntryPoint(std::string_view its_name, int of_version, Function itself, Function of_threads) noexcept
        : name(its_name), version(of_version), function(itself), for_threads(of_threads) {
        first = this;
    }

    const std::string_view name;
    const int version;                     ///< the CUDA version of this ABI, as in <cudaTypedefs.h>
    const Function function, for_threads;  ///< both are the same if the function takes no stream
    std::atomic<std::uint64_t> calls{0};
    inline static constinit const EntryPoint* first = nullptr;
    const EntryPoint* const next = first;
};

/// Thrown by the body of a driver function, which returns the code.
struct Failed {
    CUresult code;
};

/// Throws unless `condition` is true.
inline void require(const auto& condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
    if (!condition) throw Failed{code};
}
/// Throws if `code` is an error.
inline void check(CUresult code) { require(code == CUDA_SUCCESS, code); }

/// Calls the body if `Ready` succeeds. Exceptions become error codes because C programs cannot catch them.
template <auto Ready, auto Body, class... Arguments>
CUresult guarded(Arguments... arguments) noexcept {
    const CallTime time;
    const streams::DriverLock lock;
    try {
        check(Ready());
        Body(arguments...);
        return CUDA_SUCCESS;
    } catch (const Failed& failed) {
        return failed.code;
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    } catch (const std::length_error&) {  // larger than any container can be
        return out_of_memory();
    } catch (const std::exception&) {
        return CUDA_ERROR_UNKNOWN;
    }
}

}  // namespace emulated::driver

/// Defines a function of emulated_abi.h.
#define EMULATED_EXPORT extern "C" __attribute__((visibility("default")))

/// EMULATED_API(cuMemFree, 3020, CUdeviceptr address) { ... } defines cuMemFree with the ABI that it has had since CUDA
/// 3.2, and exports it under the name that <cuda.h> gives it (cuMemFree_v2).
#define EMULATED_API(name, version, ...) \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, always, __VA_ARGS__)
/// Defines a function that needs cuInit.
#define EMULATED_DRIVER_API(name, version, ...) \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, initialised, __VA_ARGS__)
/// Defines a function that needs a current context without an error.
#define EMULATED_CONTEXT_API(name, version, ...) \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, same, ready, __VA_ARGS__)
/// Variants of EMULATED_API and EMULATED_CONTEXT_API for functions to which NULL may be the thread's own stream.
#define EMULATED_STREAM_API(name, version, ...) \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, per_thread, always, __VA_ARGS__)
#define EMULATED_STREAM_CONTEXT_API(name, version, ...) \
    EMULATED_DEFINE(name, #name, PFN_##name##_v##version, version, per_thread, ready, __VA_ARGS__)
/// Defines an older version of a function whose signature has changed. It is exported under the unsuffixed name, which
/// <cuda.h> renames by a macro, and calls the current version, which counts the call. For functions that only changed their
/// name the build makes aliases.
#define EMULATED_OLDER_API(name, version, ...) \
    EMULATED_OLDER(name##_older_##version, #name, PFN_##name##_v##version, version, #name, __VA_ARGS__)
/// Like EMULATED_OLDER_API, exported as `symbol`.
#define EMULATED_OLDER_API_AS(symbol, name, version, ...) \
    EMULATED_OLDER(name##_older_##version, #name, PFN_##name##_v##version, version, #symbol, __VA_ARGS__)

#define EMULATED_OLDER(name, spelled, Type, version, symbol, ...)                 \
    static_assert(::emulated::driver::is_listed(spelled));                        \
    extern "C" CUresult CUDAAPI name(__VA_ARGS__) asm(symbol);                    \
    static const auto name##_entry =                                              \
        ::emulated::driver::EntryPoint::of<Type>(spelled, version, &name, &name); \
    EMULATED_FUNCTION(name, , always, __VA_ARGS__)

#define EMULATED_DEFINE(name, spelled, Type, version, variant, ready, ...)                                   \
    static_assert(::emulated::driver::is_listed(spelled));                                                   \
    static auto name##_entry = ::emulated::driver::EntryPoint::of<Type>(spelled, version, &name,             \
                                                                        ::emulated::driver::variant<&name>); \
    EMULATED_FUNCTION(name, name##_entry.calls.fetch_add(1, std::memory_order_relaxed);, ready, __VA_ARGS__)

#define EMULATED_FUNCTION(name, count, ready, ...) \
    EMULATED_FUNCTION_OF(EMULATED_ARITY(__VA_ARGS__), name, count, ready, __VA_ARGS__)
#define EMULATED_FUNCTION_OF(...) EMULATED_FUNCTION_RENAMED(__VA_ARGS__)
#define EMULATED_FUNCTION_RENAMED(arity, name, count, ready, ...)                                   \
    static void name##_body(__VA_ARGS__);                                                           \
    EMULATED_EXPORT CUresult CUDAAPI name(EMULATED_EACH_##arity(EMULATED_PARAMETER, name##_body)) { \
        count return ::emulated::driver::guarded<&::emulated::driver::ready, &name##_body>(         \
            EMULATED_EACH_##arity(EMULATED_ARGUMENT, name##_body));                                 \
    }                                                                                               \
    static void name##_body(__VA_ARGS__)

#define EMULATED_ARITY(...) \
    EMULATED_SIXTEENTH(__VA_OPT__(__VA_ARGS__, ) 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define EMULATED_SIXTEENTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, count, ...) count

#define EMULATED_PARAMETER(index, body) ::emulated::driver::Parameter<index, &body> a##index
#define EMULATED_ARGUMENT(index, body) a##index
#define EMULATED_EACH_0(what, body)
#define EMULATED_EACH_1(what, body) what(0, body)
#define EMULATED_EACH_2(what, body) EMULATED_EACH_1(what, body), what(1, body)
#define EMULATED_EACH_3(what, body) EMULATED_EACH_2(what, body), what(2, body)
#define EMULATED_EACH_4(what, body) EMULATED_EACH_3(what, body), what(3, body)
#define EMULATED_EACH_5(what, body) EMULATED_EACH_4(what, body), what(4, body)
#define EMULATED_EACH_6(what, body) EMULATED_EACH_5(what, body), what(5, body)
#define EMULATED_EACH_7(what, body) EMULATED_EACH_6(what, body), what(6, body)
#define EMULATED_EACH_8(what, body) EMULATED_EACH_7(what, body), what(7, body)
#define EMULATED_EACH_9(what, body) EMULATED_EACH_8(what, body), what(8, body)
#define EMULATED_EACH_10(what, body) EMULATED_EACH_9(what, body), what(9, body)
#define EMULATED_EACH_11(what, body) EMULATED_EACH_10(what, body), what(10, body)
#define EMULATED_EACH_12(what, body) EMULATED_EACH_11(what, body), what(11, body)
#define EMULATED_EACH_13(what, body) EMULATED_EACH_12(what, body), what(12, body)
#define EMULATED_EACH_14(what, body) EMULATED_EACH_13(what, body), what(13, body)
#define EMULATED_EACH_15(what, body) EMULATED_EACH_14(what, body), what(14, body)
