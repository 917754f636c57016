// C++: exceptions through many frames, destructors, threads, containers and streams.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

namespace {

struct Noisy {
    std::string name;
    explicit Noisy(std::string n) : name(std::move(n)) {}
    ~Noisy() { std::cout << "~" << name << "\n"; }
};

struct Base {
    virtual ~Base() = default;
    virtual std::string name() const { return "base"; }
};
struct Derived : Base {
    std::string name() const override { return "derived"; }
};

[[gnu::noinline]] int deep(int depth) {
    Noisy noisy("frame " + std::to_string(depth));
    if (depth == 0)
        throw std::runtime_error("from the bottom");
    return deep(depth - 1) + 1;
}

void exceptions() {
    try {
        deep(3);
    } catch (const std::exception &e) {
        std::cout << "caught " << e.what() << "\n";
    }
    try {
        try {
            throw 42;
        } catch (int value) {
            std::cout << "int " << value << "\n";
            throw;
        }
    } catch (...) {
        std::cout << "again\n";
    }
    try {
        std::vector<int>().at(3);
    } catch (const std::out_of_range &) {
        std::cout << "out of range\n";
    }
    try {
        Base base;
        dynamic_cast<Derived &>(base);
    } catch (const std::bad_cast &) {
        std::cout << "bad cast\n";
    }
    try {
        std::throw_with_nested(std::logic_error("outer"));
    } catch (const std::logic_error &e) {
        std::cout << e.what() << "\n";
    }
}

thread_local int own = 1;

void threads() {
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<int> total{0};
    int turn = 0;
    std::vector<std::thread> all;
    for (int me = 0; me < 3; me++)
        all.emplace_back([&, me] {
            own += me;
            total += own;
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return turn == me; });
            std::cout << "thread " << me << " has " << own << "\n";
            turn++;
            changed.notify_all();
        });
    for (auto &thread : all)
        thread.join();
    std::cout << "total " << total << ", here " << own << "\n";
    auto fails = std::async(std::launch::async, []() -> int { throw std::runtime_error("in a thread"); });
    try {
        fails.get();
    } catch (const std::exception &e) {
        std::cout << "future: " << e.what() << "\n";
    }
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread([&] { promise.set_value(7); }).join();
    std::cout << future.get() << "\n";
    std::timed_mutex timed;
    timed.lock();
    std::thread([&] { std::cout << timed.try_lock_for(std::chrono::milliseconds(5)) << "\n"; }).join();
}

void library() {
    std::map<std::string, int> counts;
    std::istringstream words("the cat and the dog and the end");
    for (std::string word; words >> word;)
        counts[word]++;
    for (const auto &[word, count] : counts)
        std::cout << word << "=" << count << " ";
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    std::sort(values.begin(), values.end(), [](int a, int b) { return a * 7919 % 1000 < b * 7919 % 1000; });
    std::cout << "\n" << values[0] << " " << values[1] << " " << values[999] << "\n";
    std::unique_ptr<Base> object = std::make_unique<Derived>();
    std::cout << object->name() << " " << (typeid(*object) == typeid(Derived)) << "\n";
    std::cout.precision(12);
    std::cout << std::hex << 255 << std::dec << " " << 1.0 / 3 << " " << std::scientific << 12345.678 << "\n";
}

} // namespace

int main() {
    exceptions();
    threads();
    library();
    auto shared = std::make_shared<Noisy>("shared");
    std::weak_ptr<Noisy> weak = shared;
    shared.reset();
    std::cout << weak.expired() << std::endl;
    std::set_terminate([] {
        std::cout << "terminated" << std::endl;
        std::_Exit(8);
    });
    throw std::runtime_error("nobody catches this");
}
