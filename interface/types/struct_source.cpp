#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/interface/types/struct_source.hpp>

namespace bascule {
namespace {

constexpr std::uint32_t widest = 16;  // no element type is aligned to more

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    reject_field(ErrorKind::value, path, "bascule.struct: field '{}' {}", shortened(path), why);
}

// --- Names

/// Names that no member may have: C++23's keywords and alternative tokens, `restrict`, `typeof` and `warpSize`. Each is
/// between blanks.
constexpr std::string_view keywords =
    " "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export extern "
    "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr "
    "operator or or_eq private protected public register reinterpret_cast requires restrict return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw true "
    "try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq warpSize ";

/// Why a name cannot be used; empty if it can.
std::string_view flaw_of(std::string_view name) {
    if (!is_identifier(name)) return "is not a C++ identifier";
    if (keywords.find(fmt::format(" {} ", name)) != keywords.npos) return "is a keyword of C++";
    if (name.starts_with("__")) return "begins with two underscores, as the compiler's own names do";
    return {};
}

// --- Offsets of members

/// An element of a member in C++.
struct Element {
    std::string_view type;  ///< empty for a structure
    std::uint32_t alignment = 1;
    bool is_class = false;  ///< its member functions take references, so it must be aligned everywhere
};

bool is_bytes(const StructField& field) noexcept {
    return field.nested.empty() && field.dtype.kind == DType::Kind::opaque &&
           field.dtype.format == DType::Format::none;
}

Element element_of(const StructField& field, const std::string& path) {
    if (is_bytes(field)) return {"unsigned char"};
    const std::string_view type = cuda_name(field.dtype);
    if (type.empty()) {
        fail(path, fmt::format("is {}, which has no type in CUDA C++: give the dtype a field of bytes there, "
                               "such as 'u1'.",
                               to_string(field.dtype)));
    }
    const bool is_class = field.dtype.format != DType::Format::none || type == "__half" ||
                          field.dtype.kind == DType::Kind::complex;
    return {type, field.dtype.alignment(), is_class};
}

std::vector<const StructField*> by_offset(const std::vector<StructField>& fields) {
    std::vector<const StructField*> sorted;
    sorted.reserve(fields.size());
    for (const StructField& field : fields) sorted.push_back(&field);
    std::ranges::stable_sort(sorted, {}, &StructField::offset);
    return sorted;
}

/// How a struct is packed: `#pragma pack(limit)` where that is less than the alignment of its members.
struct Packing {
    std::uint32_t limit = widest;
    std::uint32_t alignment = 1;  ///< of the members, before packing

    std::uint32_t result() const noexcept { return std::min(limit, alignment); }
};

Packing packing_of(const StructLayout& layout, const std::string& path);

std::uint32_t alignment_of(const StructField& field, const std::string& path) {
    if (field.nested.empty()) return element_of(field, path).alignment;
    return packing_of({field.dtype.itemsize, field.nested}, path + ".").result();
}

/// The largest packing with which every member has the offset of the layout.
Packing packing_of(const StructLayout& layout, const std::string& path) {
    Packing packing;
    for (const StructField& field : layout.fields) {
        const std::uint32_t alignment = alignment_of(field, path + field.name);
        packing.alignment = std::max(packing.alignment, alignment);
        while (field.offset % std::min(alignment, packing.limit) != 0) packing.limit /= 2;
    }
    while (layout.bytes % packing.result() != 0) packing.limit /= 2;
    return packing;
}

// --- Text

class Writer {
  public:
    /// Reserves the names of all fields, also of nested ones, so that no structure gets one of them: a member must not
    /// hide a type that another member uses.
    Writer(const StructLayout& layout, std::string_view name) {
        reserve(layout.fields);
        names_.erase(std::string(name));
    }

    /// Defines the struct, after the structures inside it, with at most this packing, and returns its name. Equal
    /// structures get one definition.
    std::string define(const StructLayout& layout, const std::string& wanted, const std::string& path,
                       std::uint32_t most);

    std::string text() const {
        std::string all;
        for (const std::string& header : headers_) all += fmt::format("#include <{}>\n", header);
        return all + definitions_;
    }

  private:
    struct Known {
        StructLayout layout;
        std::uint32_t packing;
        std::string name;
    };

    void reserve(const std::vector<StructField>& fields) {
        for (const StructField& field : fields) {
            names_.insert(field.name);
            reserve(field.nested);
        }
    }
    std::string members(const StructLayout& layout, const std::string& name, const std::string& path,
                        std::uint32_t packing);
    std::string declaration(const StructField& field, const std::string& outer, const std::string& path,
                            std::uint32_t packing);

    std::vector<Known> known_;
    std::set<std::string> names_;
    std::set<std::string> headers_;
    std::string definitions_;
};

void check_field(const StructField& field, const StructLayout& layout, std::uint64_t end,
                 const std::string& before, const std::string& owner, const std::string& path) {
    if (const std::string_view flaw = flaw_of(field.name); !flaw.empty()) {
        fail(path, fmt::format("has a name that {}: rename it.", flaw));
    }
    if (field.name == owner) fail(path, "has the same name as the structure: pass another `name`.");
    for (const std::int64_t extent : field.shape) {
        if (extent < 1) fail(path, "is an empty array, which C++ does not have: remove it.");
    }
    if (field.bytes() == 0) fail(path, "has no bytes: remove it.");
    if (field.offset < end) {
        fail(path, fmt::format("overlaps field '{}', and the fields of a C++ struct do not: describe the "
                               "bytes once, and make the other reading in the kernel.",
                               shortened(before)));
    }
    if (field.offset + field.bytes() > layout.bytes) {
        fail(path, fmt::format("ends at byte {}, behind the {} of the structure.",
                               field.offset + field.bytes(), layout.bytes));
    }
}

/// Unnamed bit-fields fill a gap, because they are not members, which a tuple or an initializer would have to name. A
/// wide gap is an array, because its bit-fields would be a long text.
std::string gap_of(const StructLayout& layout, std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t most = 256;
    if (bytes > most) {
        std::string name = fmt::format("padding_{}", offset);
        while (std::ranges::find(layout.fields, name, &StructField::name) != layout.fields.end()) name += '_';
        return fmt::format("    unsigned char {}[{}];\n", name, bytes);
    }
    std::string text = "    unsigned char : 8";
    for (std::uint64_t i = 1; i < bytes; ++i) text += ", : 8";
    return text + ";\n";
}

std::string asserts(const StructLayout& layout, const std::string& name) {
    std::string text = fmt::format(
        "static_assert(sizeof({0}) == {1}, \"{0} has another size than in NumPy\");\n", name, layout.bytes);
    for (const StructField* field : by_offset(layout.fields)) {
        text += fmt::format(
            "static_assert(offsetof({0}, {1}) == {2}, \"{0}::{1} lies elsewhere than in "
            "NumPy\");\n",
            name, field->name, field->offset);
    }
    return text;
}

std::string Writer::define(const StructLayout& layout, const std::string& wanted, const std::string& path,
                           std::uint32_t most) {
    const Packing loosest = packing_of(layout, path);
    const std::uint32_t packing = std::min(most, loosest.limit);
    const bool packed = packing < loosest.alignment;
    const auto same = std::ranges::find_if(known_, [&](const Known& each) {
        return each.layout == layout && each.packing == (packed ? packing : widest);
    });
    if (same != known_.end()) return same->name;

    std::string name = wanted;
    while (!names_.insert(name).second) name += '_';
    const std::string body = members(layout, name, path, packed ? packing : widest);
    if (!definitions_.empty()) definitions_ += '\n';
    if (packed) definitions_ += fmt::format("#pragma pack(push, {})\n", packing);
    definitions_ += fmt::format("struct {} {{\n{}}};\n", name, body);
    if (packed) definitions_ += "#pragma pack(pop)\n";
    headers_.emplace("cstddef");  // offsetof
    definitions_ += asserts(layout, name);
    known_.push_back({layout, packed ? packing : widest, name});
    return name;
}

std::string Writer::members(const StructLayout& layout, const std::string& name, const std::string& path,
                            std::uint32_t packing) {
    std::string text;
    std::uint64_t end = 0;
    std::string before;
    const auto pad = [&](std::uint64_t to, std::uint32_t alignment) {
        alignment = std::min(alignment, packing);
        if (to != (end + alignment - 1) / alignment * alignment)
            text += gap_of(layout, end, to - end);  // else the compiler pads
    };
    for (const StructField* field : by_offset(layout.fields)) {
        check_field(*field, layout, end, before, name, path + field->name);
        pad(field->offset, alignment_of(*field, path + field->name));
        text += fmt::format("    {};\n", declaration(*field, name, path + field->name, packing));
        end = field->offset + field->bytes();
        before = field->name;
    }
    pad(layout.bytes, packing_of(layout, path).alignment);
    return text;
}

std::string Writer::declaration(const StructField& field, const std::string& outer, const std::string& path,
                                std::uint32_t packing) {
    std::string type;
    if (!field.nested.empty()) {
        type = define({field.dtype.itemsize, field.nested}, outer + "_" + field.name, path + ".", packing);
    } else {
        const Element element = element_of(field, path);
        if (const ElementType* row = element_type(field.dtype); row != nullptr && !row->header.empty())
            headers_.emplace(row->header);
        type = element.is_class && element.alignment > packing
                   ? fmt::format("bascule::unaligned<{}>", element.type)
                   : std::string(element.type);
    }
    std::string extents;
    for (const std::int64_t extent : field.shape) extents += fmt::format("[{}]", extent);
    if (is_bytes(field)) extents += fmt::format("[{}]", field.dtype.itemsize);
    return fmt::format("{} {}{}", type, field.name, extents);
}

}  // namespace

bool is_identifier(std::string_view name) noexcept {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) &&
           std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string struct_source(const StructLayout& layout, std::string_view name) {
    if (const std::string_view flaw = flaw_of(name); !flaw.empty()) {
        reject(ErrorKind::value, {.field = "name", .got = std::string(name)},
               "bascule.struct: the name '{}' {}: pass another.", shortened(name), flaw);
    }
    if (layout.fields.empty()) {
        reject_field(
            ErrorKind::value, "dtype",
            "bascule.struct: the dtype has no fields: pass a structured one, such as np.dtype([(\"x\", "
            "\"f4\"), (\"id\", \"i8\")]).");
    }
    Writer writer(layout, name);
    writer.define(layout, std::string(name), "", widest);
    return writer.text();
}

}  // namespace bascule
