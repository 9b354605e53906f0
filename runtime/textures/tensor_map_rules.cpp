// The table of rules. tests/python/tensor_maps compares it with a second statement of them and with drivers' verdicts.
#include <algorithm>

#include <fmt/args.h>

#include <bascule/runtime/textures/tensor_map_rules.hpp>

namespace bascule {
namespace {

using Map = TensorMapDescription;

std::uint64_t alignment_of(const Map& m) noexcept { return m.interleave == 32 ? 32 : 16; }
int least_rank(const Map& m) noexcept { return m.is_im2col || m.interleave != 0 ? 3 : 1; }
/// The number of elements of one load along the innermost axis, and their size in bytes.
std::uint32_t row_of(const Map& m) noexcept { return m.is_im2col ? m.channels : m.box[0]; }
std::uint64_t row_bytes(const Map& m) noexcept { return std::uint64_t{row_of(m)} * m.itemsize; }
/// The largest offset of a corner: fewer bits the more spatial axes there are.
int most_offset(const Map& m) noexcept { return m.rank == 3 ? 32767 : m.rank == 4 ? 127 : 15; }
bool is_offset(const Map& m, int value) noexcept {
    return value >= -most_offset(m) - 1 && value <= most_offset(m);
}

/// The axes for which a rule is checked: once for the whole map, for each axis, for all but the innermost, or for the
/// spatial axes of im2col.
enum class Over : std::uint8_t { map, axes, outer, pixels };

/// `breaks` gets an axis, counted from the innermost. The fields of the sentence are those of `sentence_of`.
struct Rule {
    const char* field;
    Over over;
    bool (*breaks)(const Map& m, int axis);
    const char* sentence;
};

// clang-format off
constexpr Rule rules[] = {
    {"interleave", Over::map, [](const Map& m, int) { return m.interleave != 0 && m.interleave != 16 && m.interleave != 32; },
     "'interleave' is 16 or 32 bytes, got {interleave}."},
    // The rules below read only as many axes as a map has.
    {"array", Over::map, [](const Map& m, int) { return m.rank < least_rank(m) || m.rank > Map::max_rank; },
     "a tensor map{kind} has {least} to 5 dimensions, and the array has {rank}: reshape or index it."},
    {"swizzle", Over::map, [](const Map& m, int) { return m.swizzle != 0 && m.swizzle != 32 && m.swizzle != 64 && m.swizzle != 128; },
     "'swizzle' is 32, 64 or 128 bytes, got {swizzle}."},
    {"l2_promotion", Over::map, [](const Map& m, int) {
         return m.l2_promotion != 0 && m.l2_promotion != 64 && m.l2_promotion != 128 && m.l2_promotion != 256; },
     "'l2_promotion' is 64, 128 or 256 bytes, got {promotion}."},
    {"fill", Over::map, [](const Map& m, int) { return m.fill == TensorMapFill::nan && !m.floating; },
     "NaN fills arrays of float16, bfloat16, float32 and float64 alone: 'fill' is \"zeros\" for others."},
    {"array", Over::map, [](const Map& m, int) { return m.address % alignment_of(m) != 0; },
     "the array begins at {address:#x}, and a tensor map at a multiple of {alignment} bytes. Pass a copy, or the whole array if this "
     "is a part of it, with coordinates that count from its beginning."},
    {"array", Over::axes, [](const Map& m, int i) { return m.extents[i] == 0 || m.extents[i] > 1ULL << 31; },
     "axis {axis} of the array has {extent} elements, and an axis of a tensor map 1 to 2**31: make maps of parts of the array."},
    {"array", Over::outer, [](const Map& m, int i) { return m.strides[i - 1] % alignment_of(m) != 0; },
     "the elements of axis {axis} are {stride} bytes apart, and those of a tensor map a multiple of {alignment}. Pass a copy whose rows "
     "are longer: x = wide[:, :width], where the rows of wide are such a multiple."},
    {"array", Over::outer, [](const Map& m, int i) { return m.strides[i - 1] >= 1ULL << 40; },
     "the elements of axis {axis} are {stride} bytes apart, and those of a tensor map less than 2**40. Make maps of parts of the array."},
    {"box", Over::map, [](const Map& m, int) { return m.is_im2col && (m.channels < 1 || m.channels > 256); },
     "with 'im2col' the second number of 'box' is 1 to 256 channels, got {row}."},
    {"box", Over::map, [](const Map& m, int) { return m.is_im2col && (m.pixels < 1 || m.pixels > 1024); },
     "with 'im2col' the first number of 'box' is 1 to 1024 pixels, got {pixels}."},
    {"box", Over::axes, [](const Map& m, int i) { return !m.is_im2col && (m.box[i] < 1 || m.box[i] > 256); },
     "'box' has 1 to 256 elements on each axis, got {box} on axis {axis}."},
    {"box", Over::map, [](const Map& m, int) { return m.interleave == 0 && row_bytes(m) % 16 != 0; },
     "the last number of 'box' is {row} elements of {itemsize} bytes, {row_bytes} bytes, and the rows of a box are a multiple of 16 bytes: "
     "pass a multiple of {multiple} there."},
    {"box", Over::map, [](const Map& m, int) {
         return m.interleave == 0 && m.swizzle != 0 && row_bytes(m) > static_cast<std::uint64_t>(m.swizzle); },
     "the last number of 'box' is {row} elements of {itemsize} bytes, {row_bytes} bytes, and a 'swizzle' of {swizzle} bytes takes rows of "
     "at most that many: pass at most {most_row} there, or a wider 'swizzle' (128 at most)."},
    {"swizzle", Over::map, [](const Map& m, int) { return m.interleave == 32 && m.swizzle != 32; },
     "an 'interleave' of 32 bytes goes with a 'swizzle' of 32 alone, got {swizzle}."},
    {"element_strides", Over::axes, [](const Map& m, int i) {  // the driver ignores the innermost one without interleave
         return (i > 0 || m.interleave != 0) && (m.element_strides[i] < 1 || m.element_strides[i] > 8); },
     "'element_strides' are 1 to 8, got {step} for axis {axis}."},
    {"im2col", Over::pixels, [](const Map& m, int i) { return !is_offset(m, m.lower[i - 1]) || !is_offset(m, m.upper[i - 1]); },
     "the corners of 'im2col' are {least_offset} to {most_offset} for an array of {rank} dimensions, got {lower} and {upper} for axis {axis}."},
    {"im2col", Over::pixels, [](const Map& m, int i) {
         return static_cast<std::int64_t>(m.extents[i]) + m.upper[i - 1] - m.lower[i - 1] < 1; },
     "the corners of 'im2col', {lower} and {upper}, leave no pixel of the {extent} on axis {axis}: the first is 0 + lower, the last "
     "{extent} - 1 + upper."},
};
// clang-format on

std::string sentence_of(const Rule& rule, const Map& m, int i) {
    fmt::dynamic_format_arg_store<fmt::format_context> values;
    const auto add = [&](const char* name, auto value) { values.push_back(fmt::arg(name, value)); };
    const auto last = static_cast<int>(m.strides.size());
    add("kind", m.is_im2col ? " with 'im2col'" : m.interleave != 0 ? " with 'interleave'" : "");
    add("axis", m.rank - 1 - i);  // in the array's order
    add("rank", m.rank);
    add("least", least_rank(m));
    add("interleave", m.interleave);
    add("swizzle", m.swizzle);
    add("promotion", m.l2_promotion);
    add("address", m.address);
    add("alignment", alignment_of(m));
    add("extent", m.extents[i]);
    add("stride", m.strides[std::clamp(i - 1, 0, last - 1)]);
    add("box", m.box[i]);
    add("step", m.element_strides[i]);
    add("itemsize", m.itemsize);
    add("row", row_of(m));
    add("row_bytes", row_bytes(m));
    add("multiple", 16 / std::max(m.itemsize, 1U));
    add("most_row", static_cast<std::uint32_t>(m.swizzle) / std::max(m.itemsize, 1U));
    add("pixels", m.pixels);
    add("least_offset", -most_offset(m) - 1);
    add("most_offset", most_offset(m));
    add("lower", m.lower[std::clamp(i - 1, 0, 2)]);
    add("upper", m.upper[std::clamp(i - 1, 0, 2)]);
    return fmt::vformat(rule.sentence, values);
}

}  // namespace

std::optional<BrokenRule> broken_rule(const TensorMapDescription& description) {
    for (const Rule& rule : rules) {
        if (rule.over == Over::pixels && !description.is_im2col) continue;
        const int first = rule.over == Over::outer || rule.over == Over::pixels ? 1 : 0;
        const int end = rule.over == Over::map      ? 1
                        : rule.over == Over::pixels ? description.rank - 1
                                                    : description.rank;
        for (int axis = first; axis < end; ++axis) {
            if (rule.breaks(description, axis))
                return BrokenRule{rule.field, sentence_of(rule, description, axis)};
        }
    }
    return std::nullopt;
}

}  // namespace bascule
