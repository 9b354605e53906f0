// Finds the variable or parameter from which the address of an access derives, if it is exactly one. For checks.
#include <algorithm>

#include "program/layout.hpp"
#include "program/step.hpp"

namespace emulated::program {
namespace {

/// What is known of a value: an index into Code::origins, or one of these. Values only go up: unseen, then a plain number
/// or an origin, then unknown.
using Value = std::uint16_t;
constexpr Value plain = 0, unseen = 0xffff, unknown = Layout::several_origins;

bool is_origin(Value value) { return value != plain && value != unseen && value != unknown; }

/// A value that is one or the other.
Value either(Value a, Value b) { return a == unseen || a == b ? b : b == unseen ? a : unknown; }

/// A sum: the address of a variable plus a number that is no address.
Value sum(Value a, Value b) {
    if (a == unseen || b == unseen) return unseen;
    return a == plain ? b : b == plain ? a : unknown;
}

class Tracing {
  public:
    Tracing(Body& body, const Layout& layout)
        : body_(body), layout_(layout), values_(body.register_bytes.size(), unseen) {}

    void run() {
        for (bool changed = true; changed;) {
            changed = false;
            for (const Step& step : body_.steps) {
                const Value made = result_of(step);
                step.each_result([&](std::uint32_t reg) {
                    const Value now = either(values_[reg], made);
                    changed = changed || now != values_[reg];
                    values_[reg] = now;
                });
            }
        }
        for (Step& step : body_.steps) {
            const Operation operation = step.key.operation;
            const bool has_values = operation == Operation::atom || operation == Operation::atom_wide;
            if (!has_values && operation != Operation::ld_used && !is_access(step)) continue;
            const Value of = value_of(has_values ? step.sources.front() : step.sources.back());
            step.origin = is_origin(of) ? of : plain;
        }
    }

  private:
    Value value_of(const Ref& ref) const {
        return ref.kind == Ref::Kind::virtual_register ? values_[ref.index] : layout_.origin_at(ref);
    }

    Value result_of(const Step& step) const {
        const auto source = [&](std::size_t k) { return value_of(step.sources[k]); };
        switch (step.key.operation) {
            case Operation::mov:
            case Operation::cvta:
            case Operation::cvt:
                return source(0);
            case Operation::add:
            case Operation::and_:
            case Operation::or_:
            case Operation::xor_:
                return sum(source(0), source(1));
            case Operation::sub:  // the difference of two addresses is neither
                return is_origin(source(1)) ? unknown : sum(source(0), source(1));
            case Operation::mad:
                return source(2);
            case Operation::selp:
                return either(source(0), source(1));
            case Operation::ld:
            case Operation::ld_used:
            case Operation::atom:
            case Operation::atom_wide:
            case Operation::load_parameter:
            case Operation::load_argument:
            case Operation::take_results:
            case Operation::pack:
                return may_be_address(step) ? unknown : plain;
            default:
                return plain;
        }
    }

    // A value of 64 bits from elsewhere may be an address; an index of 32 bits is none.
    bool may_be_address(const Step& step) const {
        bool wide = false;
        step.each_result([&](std::uint32_t reg) { wide = wide || body_.register_bytes[reg] == 8; });
        return wide;
    }

    Body& body_;
    const Layout& layout_;
    std::vector<Value> values_;
};

}  // namespace

void trace_origins(Body& body, const Layout& layout) { Tracing(body, layout).run(); }

}  // namespace emulated::program
