// Structures as bytes, and back: all lengths are checked when they are read.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace bascule {

/// Numbers take 8 bytes in this machine's byte order: a record is only read on machines of the same kind.
class ByteWriter {
  public:
    void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void text(std::string_view text) {
        number(text.size());
        bytes_ += text;
    }
    std::string take() && { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// After the first value that does not fit, all reads return empty values and `good` is false.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    std::uint64_t number() {
        const std::string_view bytes = take(sizeof(std::uint64_t));
        std::uint64_t value = 0;
        if (good_) std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    /// The length of a list whose elements have at least one number each.
    std::uint64_t count() {
        const std::uint64_t value = number();
        good_ = good_ && value <= rest_.size() / sizeof value;
        return good_ ? value : 0;
    }
    /// A number that is at most `last`, such as an enumerator.
    std::uint64_t choice(std::uint64_t last) {
        const std::uint64_t value = number();
        good_ = good_ && value <= last;
        return good_ ? value : 0;
    }
    std::string_view text() { return take(number()); }

    bool good() const noexcept { return good_; }
    bool at_end() const noexcept { return good_ && rest_.empty(); }

  private:
    std::string_view take(std::uint64_t count) {
        good_ = good_ && count <= rest_.size();
        if (!good_) return {};
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }

    std::string_view rest_;
    bool good_ = true;
};

/// A description of a format: the kinds, names and order of all members, and the names of enumerators. Two builds with
/// equal descriptions read each other's bytes in the same way.
class FormatText {
  public:
    void add(std::string_view words) {
        text_ += words;
        text_ += '\n';
    }
    std::string take() && { return std::move(text_); }

  private:
    std::string text_;
};

/// "bascule::Color::red", as the compiler spells it.
template <auto value>
constexpr std::string_view enumerator_name() {
    std::string_view name = __PRETTY_FUNCTION__;
    name.remove_prefix(name.find("value = ") + 8);
    return name.substr(0, name.find_first_of(";]"));
}

/// Writes, reads or describes values: `Bytes` is a ByteWriter, a ByteReader or a FormatText. A type with members needs
/// a function `pass_members(record, value)` in its namespace, which calls `members`; when reading, `value` is
/// default-constructed.
template <class Bytes>
class Record {
  public:
    explicit Record(Bytes& bytes) : bytes_(bytes) {}

    template <class... T>
    void members(std::string_view names, T&... values) {
        if constexpr (describes) bytes_.add(names);
        (pass(values), ...);
    }

    /// Passes an enumeration whose values are 0 to `last`.
    template <auto last>
    void choice(decltype(last)& value) {
        using Choice = decltype(last);
        constexpr auto most = static_cast<std::size_t>(last);
        if constexpr (describes) {
            [&]<std::size_t... each>(std::index_sequence<each...>) {
                (bytes_.add(enumerator_name<static_cast<Choice>(each)>()), ...);
            }
            (std::make_index_sequence<most + 1>());
        } else if constexpr (writes) {
            bytes_.number(static_cast<std::uint64_t>(value));
        } else {
            value = static_cast<Choice>(bytes_.choice(most));
        }
    }

    /// When reading, a string_view becomes a view of the bytes.
    template <class Text>
    requires std::same_as<Text, std::string> || std::same_as<Text, std::string_view>
    void pass(Text& text) {
        if constexpr (describes) {
            bytes_.add("text");
        } else if constexpr (writes) {
            bytes_.text(text);
        } else {
            text = bytes_.text();
        }
    }
    template <class Number>
    requires std::integral<Number> || std::is_enum_v<Number>
    void pass(Number& number) {
        if constexpr (describes) {
            bytes_.add(std::string(std::is_signed_v<Number> ? "signed " : "unsigned ") +
                       std::to_string(sizeof number));
        } else if constexpr (writes) {
            bytes_.number(static_cast<std::uint64_t>(number));
        } else if constexpr (std::is_enum_v<Number>) {
            constexpr auto most = std::numeric_limits<std::underlying_type_t<Number>>::max();
            number = static_cast<Number>(bytes_.choice(static_cast<std::uint64_t>(most)));
        } else {
            number = static_cast<Number>(bytes_.number());
        }
    }
    void pass(bool& value) { choice<true>(value); }
    void pass(double& value) {
        auto bits = std::bit_cast<std::uint64_t>(value);
        pass(bits);
        value = std::bit_cast<double>(bits);
    }
    template <class T>
    void pass(std::vector<T>& list) {
        if constexpr (describes) {
            bytes_.add("list");
            T element{};
            return pass(element);
        }
        if constexpr (writes) bytes_.number(list.size());
        if constexpr (reads) list.resize(bytes_.count());
        for (T& each : list) pass(each);
    }
    template <class T>
    void pass(std::optional<T>& value) {
        bool present = value.has_value();
        pass(present);
        if ((present || describes) && !value) value.emplace();
        if (value) pass(*value);
    }
    template <class First, class Second>
    void pass(std::pair<First, Second>& both) {
        pass(both.first);
        pass(both.second);
    }
    template <class T>
    requires std::is_class_v<T> &&(!std::convertible_to<T, std::string_view>)void pass(T& value) {
        pass_members(*this, value);
    }

  private:
    static constexpr bool writes = std::same_as<Bytes, ByteWriter>;
    static constexpr bool reads = std::same_as<Bytes, ByteReader>;
    static constexpr bool describes = std::same_as<Bytes, FormatText>;

    Bytes& bytes_;
};

}  // namespace bascule

/// Passes the names of the members together with the members.
#define BASCULE_MEMBERS(...) members(#__VA_ARGS__, __VA_ARGS__)

/// Defines pass_members for a type whose members need no `choice`. To be used in namespace bascule.
#define BASCULE_RECORD(Type, ...)                  \
    template <class R>                             \
    void pass_members(R& record, Type& its) {      \
        record.members(#__VA_ARGS__, __VA_ARGS__); \
    }
