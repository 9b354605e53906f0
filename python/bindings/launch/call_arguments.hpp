// The arguments of one call of a kernel, and their order by the kernel's parameters.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>

#include "support/pybind.hpp"

namespace bascule::python {

/// The arguments of a vectorcall, borrowed during the call.
struct CallArguments {
    PyObject* const* objects;
    Py_ssize_t positional;
    PyObject* keywords;  ///< a tuple of names, or null

    std::size_t count() const noexcept {
        return static_cast<std::size_t>(positional + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)));
    }
};

/// Converts a tuple of arguments and a dict of named ones (or None) to the form of a vectorcall. Borrows both.
class UnpackedArguments {
  public:
    UnpackedArguments(const py::tuple& positional, const py::object& named);
    CallArguments get() const noexcept { return {objects_.data(), positional_, names_.ptr()}; }

  private:
    std::vector<PyObject*> objects_;
    Py_ssize_t positional_;
    py::object names_;  // null if there are none
};

/// One slot per parameter. Up to 32 need no allocation.
template <class T>
class Slots {
  public:
    explicit Slots(std::size_t count) {
        if (count > inline_.size()) more_.resize(count);
        span_ = more_.empty() ? std::span<T>(inline_.data(), count) : std::span<T>(more_);
    }
    Slots(Slots&&) = delete;
    std::span<T> span() noexcept { return span_; }

  private:
    std::array<T, 32> inline_;
    std::vector<T> more_;
    std::span<T> span_;
};

/// Stores the arguments, including named ones, in `slots` in the order of the parameters, as borrowed references.
/// `slots` has one entry per parameter. Throws: ArgumentError for a wrong count, an unknown or a repeated keyword; the
/// message shows the signature.
void order_arguments(const Signature& signature, const CallArguments& arguments, std::span<PyObject*> slots);

/// Call this after the arguments, which were ordered by the signature `declared`, have chosen a function. Throws:
/// ArgumentError if a keyword names a parameter with another position in its signature.
void check_keywords(const Signature& declared, const Signature& chosen, const CallArguments& arguments);

/// Says where to pass a keyword that is not a parameter but belongs to a launch, such as `stream`. Empty for others.
std::string place_of_keyword(const std::string& kernel, std::string_view keyword);

}  // namespace bascule::python
