// Finds the memory layout of cuda::std::span and mdspan. Their members are private, so the compiler is asked with a text
// that makes objects with known values, and the initial bytes in its PTX are read.
#pragma once

#include <map>
#include <optional>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

using ViewLayouts = std::map<std::string, ViewLayout>;  ///< by C++ type

/// A question to the compiler: where the views of an image keep their members.
struct ViewQuestion {
    std::vector<Parameter> views;  ///< one parameter of each type; empty: there is nothing to ask
    Program program;               ///< the text whose PTX answers
    std::string key;  ///< equal keys have equal answers; empty if the user's text or headers matter
};
ViewQuestion question_about_views(const Image& image, const Program& program, const Nvrtc& nvrtc);

/// Reads the views' layouts from the compiled PTX. Omits types whose layout the PTX does not show.
ViewLayouts layouts_in(const std::string& ptx, const ViewQuestion& question);

/// The layouts that `remember` stored in this process for an equal question; nothing if there are none. They are kept
/// because reading CCCL's headers takes almost a second. Thread-safe.
std::optional<ViewLayouts> remembered_layouts(const ViewQuestion& question);
void remember(const ViewQuestion& question, const ViewLayouts& layouts);

/// Adds the layouts to the parameters of the image's kernels.
void set_layouts(Image& image, const ViewLayouts& layouts);

}  // namespace bascule
