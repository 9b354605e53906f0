// printf, assert and cudaGraphSetConditional: functions that CUDA provides to kernels without a body in PTX.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "machine/groups.hpp"
#include "machine/registry.hpp"
#include "machine/warp.hpp"

namespace emulated::machine {
namespace {

// The host address for an address of a thread, or null. Sets `left` to the number of bytes from there.
const std::byte* bytes_at(const Lanes& s, unsigned lane, u64 address, u64& left) {
    const auto window = [&](u64 start, u64 bytes, const std::byte* host) -> const std::byte* {
        if (address - start >= bytes) return nullptr;
        left = bytes - (address - start);
        return host + (address - start);
    };
    if (const auto* at = window(program::shared_window, s.shared_bytes, s.shared)) return at;
    if (const auto* at = window(program::local_window, s.local_bytes, s.local + lane * s.local_bytes))
        return at;
    if (const auto* at = window(program::param_window, s.parameter_bytes, s.parameters)) return at;
    const memory::Allocation* found = s.memory->find(address);
    return found ? window(found->base, found->bytes, found->host) : nullptr;
}

// The maximum output of one printf: the size of CUDA's printf buffer, which holds the output of all printfs.
constexpr std::size_t most_printed = std::size_t{1} << 20;

// Reads a NUL-terminated string. Returns nothing if it does not end inside its memory. Cuts strings that are too long.
std::optional<std::string> text_at(const Lanes& s, unsigned lane, u64 address) {
    u64 left = 0;
    const auto* from = reinterpret_cast<const char*>(bytes_at(s, lane, address, left));
    if (!from) return std::nullopt;
    const void* end = std::memchr(from, 0, std::min<u64>(left, most_printed));
    if (end) return std::string(from, static_cast<const char*>(end));
    if (left < most_printed) return std::nullopt;
    return std::string(from, most_printed);
}

// One conversion after '%', for example -8.3lf.
struct Conversion {
    std::string flags;
    std::optional<int> width, precision;
    std::string length;
    char letter = 0;
};

class Printer {
  public:
    Printer(const Lanes& lanes, unsigned lane, u64 values) : lanes_(lanes), lane_(lane), at_(values) {}

    std::string print(const std::string& format) {
        std::string text;
        for (std::size_t i = 0; i < format.size();) {
            if (format[i] != '%') {
                text += format[i++];
            } else if (i + 1 < format.size() && format[i + 1] == '%') {
                text += '%';
                i += 2;
            } else {
                const Conversion conversion = read_conversion(format, ++i);
                convert(conversion, text);
                ++count_;
            }
            if (text.size() > most_printed) text.resize(most_printed);
        }
        return text;
    }
    int count() const { return count_; }

  private:
    // `at` is the position after the '%', and is moved past the conversion.
    Conversion read_conversion(const std::string& format, std::size_t& at) {
        Conversion made;
        while (at < format.size() && std::strchr("-+ #0", format[at])) made.flags += format[at++];
        made.width = read_number(format, at);
        if (made.width && *made.width < 0) {
            made.flags += '-';
            made.width = -*made.width;
        }
        if (at < format.size() && format[at] == '.') {
            made.precision = read_number(format, ++at).value_or(0);
            if (*made.precision < 0) made.precision.reset();
        }
        while (at < format.size() && std::strchr("hlLqjzt", format[at])) made.length += format[at++];
        if (at < format.size()) made.letter = format[at++];
        return made;
    }

    // Reads a width or precision: digits, or the next argument. Limited to what can be printed.
    std::optional<int> read_number(const std::string& format, std::size_t& at) {
        constexpr s64 most = most_printed;
        if (at < format.size() && format[at] == '*') {
            ++at;
            return static_cast<int>(std::clamp<s64>(next<s32>(), -most, most));
        }
        const std::size_t first = at;
        s64 number = 0;
        for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
            number = std::min(10 * number + (format[at] - '0'), most);
        return at == first ? std::nullopt : std::optional(static_cast<int>(number));
    }

    // Reads an argument. Each has the alignment of its type after the promotions of varargs.
    template <class T>
    T next() {
        at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
        T value{};
        u64 left = 0;
        const std::byte* from = bytes_at(lanes_, lane_, at_, left);
        if (from && left >= sizeof(T)) std::memcpy(&value, from, sizeof value);
        at_ += sizeof(T);
        return value;
    }

    template <class T>
    static void append(std::string& text, const std::string& format, T value) {
        char small[256];
        const int length = std::snprintf(small, sizeof small, format.c_str(), value);
        if (length < 0) return;
        if (static_cast<std::size_t>(length) < sizeof small) {
            text.append(small, static_cast<std::size_t>(length));
            return;
        }
        std::string large(static_cast<std::size_t>(length) + 1, 0);
        std::snprintf(large.data(), large.size(), format.c_str(), value);
        text.append(large, 0, static_cast<std::size_t>(length));
    }

    void convert(const Conversion& conversion, std::string& text) {
        std::string head = "%" + conversion.flags;
        if (conversion.width) head += std::to_string(*conversion.width);
        if (conversion.precision) head += "." + std::to_string(*conversion.precision);
        const auto is = [&](std::string_view letters) {
            return letters.find(conversion.letter) != letters.npos;
        };
        if (is("di"))
            return append(text, head + "lld", integer<long long, s32, short, signed char>(conversion));
        if (is("uxXo")) {
            return append(text, head + "ll" + conversion.letter,
                          integer<unsigned long long, u32, unsigned short, unsigned char>(conversion));
        }
        if (is("c")) return append(text, head + "c", next<s32>());
        if (is("p")) return append(text, head + "p", reinterpret_cast<void*>(next<u64>()));
        if (is("eEfFgGaA")) return append(text, head + conversion.letter, next<double>());
        if (is("s")) {
            const auto string = text_at(lanes_, lane_, next<u64>());
            return append(text, head + "s", string ? string->c_str() : "(unreadable string)");
        }
        text += head + conversion.length + conversion.letter;  // a conversion that C does not have
    }

    // The argument, extended to the width that `ll` prints.
    template <class Wide, class Int, class Short, class Char>
    Wide integer(const Conversion& conversion) {
        if (conversion.length.find_first_of("lLqjzt") != std::string::npos) return next<Wide>();
        const auto value = next<Int>();
        if (conversion.length == "hh") return static_cast<Char>(value);
        return conversion.length == "h" ? static_cast<Short>(value) : value;
    }

    const Lanes& lanes_;
    unsigned lane_;
    u64 at_;
    int count_ = 0;
};

const Instruction* print(Lanes& s, const Instruction* i) {
    const auto& put = s.block->grid->request->print;
    const u64* formats = lanes_at<u64>(s, i->operand[1]);
    const u64* values = lanes_at<u64>(s, i->operand[2]);
    s32* results = lanes_at<s32>(s, i->operand[0]);
    for (const unsigned l : LanesOf{s.mask}) {
        const auto format = text_at(s, l, formats[l]);
        if (!format) {
            results[l] = -1;
            continue;
        }
        Printer printer(s, l, values[l]);
        const std::string text = printer.print(*format);
        results[l] = printer.count();
        if (put) {
            put(text.data(), text.size());
        } else {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
        }
    }
    // Output is slow, so it uses up more of the watchdog's budget than a branch.
    constexpr u32 cost = 256;
    s.budget = s.budget > cost ? s.budget - cost : 1;
    return i + 1;
}

const Instruction* assertion(Lanes& s, const Instruction* i) {
    const unsigned l = static_cast<unsigned>(__builtin_ctz(s.mask));
    const auto wide = [&](unsigned k) { return lanes_at<u64>(s, i->operand[k])[l]; };
    const auto line = lanes_at<u32>(s, i->operand[2])[l];
    const auto message = text_at(s, l, wide(0)), file = text_at(s, l, wide(1)),
               function = text_at(s, l, wide(3));
    s.block->message = "assertion `" + message.value_or("?") + "` failed in " + function.value_or("?");
    s.block->asserted_file = file.value_or("");
    s.block->asserted_line = file ? line : 0;
    return fault(s, i, LaneFault::What::assertion);
}

const Instruction* set_condition(Lanes& s, const Instruction* i) {
    const auto& set = s.block->grid->request->set_condition;
    const u64* handles = lanes_at<u64>(s, i->operand[0]);
    const u32* values = lanes_at<u32>(s, i->operand[1]);
    const u32 unknown = lanes_where(s.mask, [&](unsigned l) { return !set || !set(handles[l], values[l]); });
    if (unknown == 0) return i + 1;
    return misuse(s, i, unknown,
                  "cudaGraphSetConditional: no graph has a conditional handle "
                  "(cuGraphConditionalHandleCreate) of this number");
}

}  // namespace

void register_external(Registry& r) {
    r.add(Operation::print, print);
    r.add(Operation::assertion, assertion);
    r.add(Operation::set_condition, set_condition);
}

}  // namespace emulated::machine
