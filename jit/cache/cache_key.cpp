#include <charconv>

#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/cache/entry_format.hpp>
#include <bascule/jit/compile/prelude.hpp>
#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {
namespace {

/// Entries hold what this version read from the compiler's names, as it read them, and in its own format.
const std::string& schema() {
    static const std::string text = "bascule " BASCULE_VERSION " " + entry_format();
    return text;
}

void add(std::string& text, std::string_view field) {
    text += std::to_string(field.size());
    text += ':';
    text += field;
    text += '\n';
}

/// Reads what `add` wrote; `good` turns false, and what is read empty, behind the end.
class FieldReader {
  public:
    explicit FieldReader(std::string_view text) : rest_(text) {}

    std::string_view next() {
        std::size_t size = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
        const auto digits = static_cast<std::size_t>(end - rest_.data());
        good_ = good_ && error == std::errc() && rest_.substr(digits).starts_with(':') &&
                size < rest_.size() - digits - 1;
        if (!good_) return {};
        const std::string_view field = rest_.substr(digits + 1, size);
        rest_.remove_prefix(digits + 1 + size + 1);
        return field;
    }
    /// As many as the next field says.
    std::size_t count() {
        const std::string_view digits = next();
        std::size_t count = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), count);
        return good_ ? count : 0;
    }
    std::vector<std::string_view> list() {
        std::vector<std::string_view> fields;
        for (std::size_t left = count(); left > 0 && good_; --left) fields.push_back(next());
        return fields;
    }
    KeyFields::Pairs pairs() {
        KeyFields::Pairs fields;
        for (std::size_t left = count(); left > 0 && good_; --left) {
            const std::string_view first = next();
            fields.emplace_back(first, next());
        }
        return fields;
    }
    bool at_end() const noexcept { return good_ && rest_.empty(); }

  private:
    std::string_view rest_;
    bool good_ = true;
};

CacheKey with_hash(std::string text) {
    const Digest digest = digest_of(text);
    return {std::move(text), digest.high, digest.low};
}

}  // namespace

CacheKey key_of(const Program& program, const Nvrtc& nvrtc) {
    CacheKey key;
    add(key.text, schema());
    add(key.text, program.source.text);
    std::vector<std::string> arguments = to_arguments(program.options);
    // The lines of the image name the file in it.
    if (!program.options.keep_sources.empty())
        arguments.push_back("keep_sources=" + absolute_path(program.options.keep_sources));
    add(key.text, std::to_string(arguments.size()));
    for (const std::string& argument : arguments) add(key.text, argument);
    add(key.text, std::to_string(program.options.headers.size()));
    for (const auto& [name, text] : program.options.headers) {
        add(key.text, name);
        add(key.text, text);
    }
    add(key.text, std::to_string(program.instances.size()));
    for (const Instance& instance : program.instances) {
        add(key.text, instance.kernel);
        add(key.text, instance.expression);
    }
    add(key.text, std::to_string(static_cast<int>(program.purpose)));
    add(key.text, program.functions_too ? "functions too" : "");
    add(key.text, to_string(program.arch));
    add(key.text, nvrtc.identity().empty() ? nvrtc.path() : nvrtc.identity());
    add(key.text, std::to_string(nvrtc.include_paths().size()));
    for (const std::string& path : nvrtc.include_paths()) add(key.text, path);
    // All of it: which part a program gets is decided by what is in the key already.
    static const std::string prelude = to_string(digest_of(whole_prelude()));
    add(key.text, prelude);
    return with_hash(std::move(key.text));
}

std::optional<KeyFields> fields_of(std::string_view key_text) {
    FieldReader in(key_text);
    KeyFields fields;
    fields.schema = in.next();
    fields.text = in.next();
    fields.arguments = in.list();
    fields.headers = in.pairs();
    fields.instances = in.pairs();
    fields.purpose = in.next();
    fields.functions_too = in.next();
    fields.arch = in.next();
    fields.nvrtc = in.next();
    fields.include_paths = in.list();
    fields.prelude = in.next();
    return in.at_end() ? std::optional(std::move(fields)) : std::nullopt;
}

CacheKey key_from_text(std::string_view text) { return with_hash(std::string(text)); }

bool is_of_this_version(std::string_view key_text) {
    std::string beginning;
    add(beginning, schema());
    return key_text.starts_with(beginning);
}

}  // namespace bascule
