// What every exported function begins with: counting, the state checks, the trace.
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

#include <cuda.h>
#include <fmt/format.h>

#include "driver/exported.hpp"
#include "driver/process.hpp"
#include "emulated_abi.h"

namespace emulated::driver {

/// Which of the program's places the calling thread launches from next; 0 when it has not said.
inline std::uint64_t& next_site() noexcept {
    thread_local constinit std::uint64_t site = 0;
    return site;
}

/// CUDA_SUCCESS, or why a function that needs cuInit cannot go on.
inline CUresult initialised() noexcept {
    return Process::get().initialised() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/// The same for a function that needs a working current context.
inline CUresult ready() noexcept {
    const CUresult allowed = may_use_contexts();
    return allowed == CUDA_SUCCESS ? usable(current_context()) : allowed;
}

/// CUDA_SUCCESS, or why `device` cannot be asked.
inline CUresult device_state(CUdevice device) noexcept {
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return Process::get().is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/// `code`, and the report says why.
inline CUresult refuse(CUresult code, std::string report) {
    Process::get().set_report(std::move(report));
    return code;
}
template <class First, class... Others>
CUresult refuse(CUresult code, fmt::format_string<First, Others...> report, First&& first,
                Others&&... others) {
    return refuse(code, fmt::format(report, std::forward<First>(first), std::forward<Others>(others)...));
}

#define EMULATED_REQUIRE(condition, code) \
    do {                                  \
        if (!(condition)) return code;    \
    } while (false)

#define EMULATED_CHECK(expression)                 \
    do {                                           \
        const CUresult state_ = (expression);      \
        if (state_ != CUDA_SUCCESS) return state_; \
    } while (false)

/// What a handle names, or the call is refused.
#define EMULATED_FIND(found, expression) \
    const auto found = expression;       \
    EMULATED_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE)

/// The row of a table whose `key` is `wanted`, as a client gave it; null where there is none. By number: an enumeration that
/// has another value may not be read as one.
template <class Rows, class Row, class Key>
constexpr const Row* find_row(const Rows& rows, Key Row::*key, int wanted) noexcept {
    const auto found =
        std::ranges::find(rows, wanted, [&](const Row& row) { return static_cast<int>(row.*key); });
    return found == std::end(rows) ? nullptr : &*found;
}

/// What a handle names; null for what is not alive, and for what is of another kind.
template <class T>
std::shared_ptr<T> find_object(const void* handle) {
    return Process::get().handles().find<T>(handle);
}

/// The handle of a new object, as the client knows it.
template <class Handle, class T>
Handle new_handle(std::shared_ptr<T> object) {
    return reinterpret_cast<Handle>(Process::get().handles().add(std::move(object)));
}

/// The end of a call that asks for one thing.
template <class T>
CUresult answer(T* out, std::type_identity_t<T> value) {
    EMULATED_REQUIRE(out != nullptr, CUDA_ERROR_INVALID_VALUE);
    *out = value;
    return CUDA_SUCCESS;
}

/// The stream of a handle, which works, as does its context.
#define EMULATED_STREAM(target, handle) \
    const StreamTarget target(handle);  \
    EMULATED_CHECK(target.state)

namespace detail {
inline std::atomic<std::uint64_t> implicit_synchronizations{0};
inline std::atomic<bool> tracing{false};
void add_to_trace(std::uint32_t kind, CUstream stream, CUevent event, std::uint64_t bytes,
                  std::string_view name) noexcept;
void announce(std::uint32_t kind, CUstream stream, std::uint64_t bytes, std::string_view name);
inline std::atomic<bool> dropping{false};
bool is_dropped() noexcept;
}  // namespace detail

/// Counts a call that a driver may order with, or wait for, all work of the context.
inline void synchronize_implicitly() noexcept {
    detail::implicit_synchronizations.fetch_add(1, std::memory_order_relaxed);
}

/// Adds an operation to the trace, if one is being recorded, and announces it to the search for races. Comes
/// before the operation, with no lock held.
inline void trace(std::uint32_t kind, CUstream stream, CUevent event, std::uint64_t bytes,
                  std::string_view name) {
    if (detail::tracing.load(std::memory_order_relaxed))
        detail::add_to_trace(kind, stream, event, bytes, name);
    // Records and waits are in no report; markers are recorded with a lock held that the asked site must not
    // need.
    const bool ordering = kind == BASCULE_EMULATED_RECORD || kind == BASCULE_EMULATED_WAIT;
    if (!ordering && races::Detector::get().on() && !races::Detector::bookkeeping())
        detail::announce(kind, stream, bytes, name);
}

/// Counts a record or wait; true when a test wants this one left out (bascule_emulated_drop).
inline bool drops() noexcept {
    return detail::dropping.load(std::memory_order_relaxed) && detail::is_dropped();
}

}  // namespace emulated::driver
