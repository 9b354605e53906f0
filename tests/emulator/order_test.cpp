// Random programs of streams, events and host functions on several devices: under each policy, operations happen in the
// documented order. The order is computed here, from the documentation's rules and without the emulator: for every
// operation the set of its predecessors.
#include <algorithm>
#include <bitset>
#include <mutex>
#include <random>
#include <string>

#include "world.hpp"

using client::Library;

namespace {

constexpr std::size_t most_operations = 128;
using Before = std::bitset<most_operations>;

/// A log in which operations record themselves.
struct Log {
    std::mutex mutex;
    std::vector<std::size_t> order;
};

struct Entry {
    Log* log = nullptr;
    std::size_t number = 0;
};

void write_down(void* data) {
    const auto& entry = *static_cast<Entry*>(data);
    const std::lock_guard lock(entry.log->mutex);
    entry.log->order.push_back(entry.number);
}

/// A stream of the program and of the model.
struct ModelStream {
    CUstream handle = nullptr;
    int device = 0;
    bool blocking = false;
    bool legacy = false;
    Before done;  ///< predecessors of the next operation in this stream
};

struct ModelEvent {
    CUevent handle = nullptr;
    int device = 0;
    Before marks;
};

/// Issues a random program, and knows the order that the documentation requires.
class Program {
  public:
    Program(Library& library, std::uint64_t seed) : api_(library), random_(seed) {
        for (int device = 0; device < 2; ++device) {
            REQUIRE(api_.cuDevicePrimaryCtxRetain(&contexts_[device], device) == CUDA_SUCCESS);
            api_.cuCtxSetCurrent(contexts_[device]);
            add_stream(device, nullptr, true, true);
            for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
                CUstream stream = nullptr;
                REQUIRE(api_.cuStreamCreate(&stream, flags) == CUDA_SUCCESS);
                add_stream(device, stream, flags == CU_STREAM_DEFAULT, false);
            }
            for (int i = 0; i < 2; ++i) {
                CUevent event = nullptr;
                REQUIRE(api_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
                events_.push_back({event, device, {}});
            }
        }
        entries_.resize(most_operations);
        befores_.resize(most_operations);
    }
    ~Program() {
        for (int device = 0; device < 2; ++device) {
            api_.cuDevicePrimaryCtxRelease(device);  // with everything made in it
            api_.cuCtxPopCurrent(nullptr);
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void issue_all() {
        while (operations_ < most_operations) issue();
        for (const CUcontext context : contexts_) {
            api_.cuCtxSetCurrent(context);
            CHECK(api_.cuCtxSynchronize() == CUDA_SUCCESS);
        }
    }

    const std::vector<std::size_t>& order() const { return log_.order; }

    /// The first pair that ran in the wrong order, or an empty string.
    std::string violation() const {
        std::vector<std::size_t> place(most_operations);
        for (std::size_t i = 0; i < log_.order.size(); ++i) place[log_.order[i]] = i;
        for (std::size_t later = 0; later < most_operations; ++later) {
            for (std::size_t earlier = 0; earlier < later; ++earlier) {
                if (befores_[later][earlier] && place[earlier] > place[later])
                    return std::to_string(later) + " ran before " + std::to_string(earlier);
            }
        }
        return "";
    }

  private:
    void add_stream(int device, CUstream handle, bool blocking, bool legacy) {
        streams_.push_back({handle, device, blocking, legacy, {}});
    }
    std::size_t any(std::size_t count) { return random_() % count; }

    /// The predecessors of the next operation on a stream: those of the stream itself; for the legacy stream, also
    /// everything on blocking streams of its context; for a blocking stream, also everything on the legacy stream.
    Before before_next(const ModelStream& stream) const {
        Before before = stream.done;
        for (const ModelStream& other : streams_) {
            const bool paired = other.device == stream.device && other.blocking && stream.blocking &&
                                (other.legacy || stream.legacy);
            if (paired) before |= other.done;
        }
        return before;
    }

    void issue() {
        ModelStream& stream = streams_[any(streams_.size())];
        api_.cuCtxSetCurrent(contexts_[stream.device]);
        switch (any(8)) {
            case 0:
            case 1: {
                ModelEvent& event = events_[any(events_.size())];
                if (event.device != stream.device) return;  // an event can be recorded only in its context
                CHECK(api_.cuEventRecord(event.handle, stream.handle) == CUDA_SUCCESS);
                event.marks = before_next(stream);
                stream.done = event.marks;
                return;
            }
            case 2:
            case 3: {
                const ModelEvent& event = events_[any(events_.size())];
                CHECK(api_.cuStreamWaitEvent(stream.handle, event.handle, 0) == CUDA_SUCCESS);
                stream.done = before_next(stream) | event.marks;
                return;
            }
            case 4:
                if (any(6) == 0) CHECK(api_.cuStreamSynchronize(stream.handle) == CUDA_SUCCESS);
                if (any(6) == 0) api_.cuStreamQuery(stream.handle);
                return;
            default:
                break;
        }
        const std::size_t number = operations_++;
        entries_[number] = {&log_, number};
        CHECK(api_.cuLaunchHostFunc(stream.handle, write_down, &entries_[number]) == CUDA_SUCCESS);
        befores_[number] = before_next(stream);
        stream.done = befores_[number];
        stream.done.set(number);
    }

    Library& api_;
    std::mt19937_64 random_;
    CUcontext contexts_[2] = {};
    std::vector<ModelStream> streams_;
    std::vector<ModelEvent> events_;
    std::vector<Entry> entries_;
    std::vector<Before> befores_;
    std::size_t operations_ = 0;
    Log log_;
};

std::vector<std::size_t> order_under(Library& library, std::uint64_t program) {
    Program made(library, program);
    made.issue_all();
    return made.order();
}

}  // namespace

TEST_CASE("what the documentation orders runs in that order, in random programs under every policy") {
    for (const char* policy : {"eager", "lazy", "threads", "random:1", "random:2", "random:3"}) {
        CAPTURE(policy);
        Library& library = client::library_under(policy, 2);
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            CAPTURE(seed);
            Program program(library, seed);
            program.issue_all();
            CHECK(program.order().size() == most_operations);
            CHECK(program.violation() == "");
        }
    }
}

TEST_CASE("a seed gives one order, again and again; another seed gives another") {
    const auto orders_of = [](const char* policy) {
        Library library({{"BASCULE_EMULATED_SCHEDULE", policy}, {"BASCULE_EMULATED_DEVICES", "2"}});
        std::vector<std::vector<std::size_t>> orders;
        for (std::uint64_t program = 1; program <= 5; ++program)
            orders.push_back(order_under(library, program));
        return orders;
    };
    const auto first = orders_of("random:5");
    CHECK(first == orders_of("random:5"));
    CHECK(first != orders_of("random:6"));
    CHECK(first != orders_of("lazy"));
}
