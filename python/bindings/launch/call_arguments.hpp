// What one call of a kernel passes, in the order of the parameters.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The arguments of a vectorcall: borrowed, for as long as the call lasts.
struct CallArguments {
    PyObject* const* objects;
    Py_ssize_t positional;
    PyObject* keywords;  ///< a tuple of names, or null

    std::size_t count() const noexcept {
        return static_cast<std::size_t>(positional + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)));
    }
};

/// A tuple of arguments and a dict of others, or None, as a vectorcall has them. Borrows both.
class UnpackedArguments {
  public:
    UnpackedArguments(const pybind11::tuple& positional, const pybind11::object& named);
    CallArguments get() const noexcept { return {objects_.data(), positional_, names_.ptr()}; }

  private:
    std::vector<PyObject*> objects_;
    Py_ssize_t positional_;
    pybind11::object names_;  // null without any
};

/// One slot a parameter, on the stack up to 32.
template <class T>
class Slots {
  public:
    explicit Slots(std::size_t count) {
        if (count > inline_.size()) more_.resize(count);
        span_ = more_.empty() ? std::span<T>(inline_.data(), count) : std::span<T>(more_);
    }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;
    std::span<T> span() noexcept { return span_; }

  private:
    std::array<T, 32> inline_;
    std::vector<T> more_;
    std::span<T> span_;
};

/// The arguments in the order of the parameters, keywords included: borrowed references. `slots` has one entry a
/// parameter. Throws: ArgumentError for a wrong count, an unknown or a repeated keyword; the message shows the
/// signature.
void order_arguments(const Signature& signature, const CallArguments& arguments, std::span<PyObject*> slots);

/// Throws ArgumentError where a keyword names another parameter of the function that the arguments chose than of those that
/// it was chosen from, by which the arguments were ordered.
void check_keywords(const Signature& declared, const Signature& chosen, const CallArguments& arguments);

/// Where a keyword belongs that is not a parameter of the kernel but that launches take elsewhere, such as `stream`; else
/// empty.
std::string place_of_keyword(const std::string& kernel, std::string_view keyword);

}  // namespace bascule::python
