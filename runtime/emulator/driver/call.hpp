// Helpers of the exported functions: checks of the state, refusals with a report, look-ups of handles, and the trace.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda.h>
#include <fmt/format.h>

#include "driver/exported.hpp"
#include "driver/process.hpp"
#include "emulated_abi.h"

namespace emulated::driver {

/// The place in the user's program from which the calling thread launches next; 0 if the client did not say.
inline std::uint64_t& next_site() noexcept {
    thread_local constinit std::uint64_t site = 0;
    return site;
}

/// The arrays that the calling thread's next launch passes, as far as the client said.
inline std::vector<checks::ArrayArgument>& next_arrays() noexcept {
    thread_local std::vector<checks::ArrayArgument> arrays;
    return arrays;
}

/// CUDA_SUCCESS, or the error of a function that needs cuInit.
inline CUresult initialised() noexcept {
    return Process::get().initialised() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/// CUDA_SUCCESS, or the error of a function that needs a working current context.
inline CUresult ready() noexcept {
    const CUresult allowed = may_use_contexts();
    return allowed == CUDA_SUCCESS ? usable(current_context()) : allowed;
}

/// CUDA_SUCCESS, or the error of a query about `device`.
inline CUresult device_state(CUdevice device) noexcept {
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return Process::get().is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/// Stores `report`, which says why the call fails, and throws `code`.
[[noreturn]] inline void refuse(CUresult code, std::string report) {
    Process::get().set_report(std::move(report));
    throw Failed{code};
}
template <class First, class... Others>
[[noreturn]] void refuse(CUresult code, fmt::format_string<First, Others...> report, First&& first,
                         Others&&... others) {
    refuse(code, fmt::format(report, std::forward<First>(first), std::forward<Others>(others)...));
}

/// Returns the table row whose `key` equals `wanted`, a value that the client passed; null if there is none. Compares
/// integers, because reading an out-of-range value as an enum is undefined behaviour.
template <class Rows, class Row, class Key>
constexpr const Row* find_row(const Rows& rows, Key Row::*key, int wanted) noexcept {
    const auto found =
        std::ranges::find(rows, wanted, [&](const Row& row) { return static_cast<int>(row.*key); });
    return found == std::end(rows) ? nullptr : &*found;
}

/// Looks up the object of a handle. Returns null if the handle is not alive or is of another kind.
template <class T>
std::shared_ptr<T> find_object(const void* handle) {
    return Process::get().handles().find<T>(handle);
}
/// The same; throws `code` instead.
template <class T>
std::shared_ptr<T> object_of(const void* handle, CUresult code = CUDA_ERROR_INVALID_HANDLE) {
    auto found = find_object<T>(handle);
    require(found != nullptr, code);
    return found;
}
/// The same for functions that report an invalid handle as an invalid argument.
template <class T>
std::shared_ptr<T> argument(const void* handle) {
    return object_of<T>(handle, CUDA_ERROR_INVALID_VALUE);
}

/// Removes the handle of an object and returns the object. Throws CUDA_ERROR_INVALID_HANDLE if there is none.
template <class T>
std::shared_ptr<T> remove(const void* handle) {
    auto found = Process::get().handles().remove<T>(handle);
    require(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return found;
}

/// Registers a new object and returns its handle.
template <class Handle, class T>
Handle new_handle(std::shared_ptr<T> object) {
    return reinterpret_cast<Handle>(Process::get().handles().add(std::move(object)));
}

/// Writes the single result of a query.
template <class T>
void answer(T* out, std::type_identity_t<T> value) {
    require(out != nullptr);
    *out = value;
}

/// Looks up a stream handle. Throws if the stream or its context cannot be used.
inline StreamTarget find_stream(CUstream handle) {
    StreamTarget target(handle);
    check(target.state);
    return target;
}

namespace detail {
inline std::atomic<std::uint64_t> implicit_synchronizations{0};
inline std::atomic<bool> tracing{false};
void add_to_trace(std::uint32_t kind, CUstream stream, CUevent event, std::uint64_t bytes,
                  std::string_view name) noexcept;
void announce(std::uint32_t kind, CUstream stream, std::uint64_t bytes, std::string_view name);
inline std::atomic<bool> dropping{false};
bool is_dropped() noexcept;
}  // namespace detail

/// Counts a call that a driver may order with all work of the context, or that may wait for it.
inline void synchronize_implicitly() noexcept {
    detail::implicit_synchronizations.fetch_add(1, std::memory_order_relaxed);
}

/// Adds an operation to the trace, if one is being recorded, and announces it to the search for races. Must be called
/// before the operation, with no lock held.
inline void trace(std::uint32_t kind, CUstream stream, CUevent event, std::uint64_t bytes,
                  std::string_view name) {
    if (detail::tracing.load(std::memory_order_relaxed))
        detail::add_to_trace(kind, stream, event, bytes, name);
    // Race reports do not name event records and waits, so these are not announced. Announcing calls the client's site
    // callback, which must not need a lock that the client holds; some records are made under such a lock.
    const bool ordering = kind == BASCULE_EMULATED_RECORD || kind == BASCULE_EMULATED_WAIT;
    if (!ordering && races::Detector::get().on() && !races::Detector::bookkeeping())
        detail::announce(kind, stream, bytes, name);
}

/// Counts an event record or a wait for an event. True if a test wants this one left out (bascule_emulated_drop).
inline bool drops() noexcept {
    return detail::dropping.load(std::memory_order_relaxed) && detail::is_dropped();
}

}  // namespace emulated::driver
