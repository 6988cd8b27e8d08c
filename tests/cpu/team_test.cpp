// SPDX-License-Identifier: Apache-2.0
// Teams of threads when something goes wrong: exceptions, fork(), no room for threads.
#include "rung/cpu/team.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "rung/core/error.hpp"

namespace rung::cpu {
namespace {

/// Runs body in a child process that is killed after 20 s; its exit status, or -1 for a signal's.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <class Body>
void run_exactly(int threads, Body&& body) {
  run_ranks(Ranks::exact, threads, body);
}

int threads_that_ran(int threads) {
  std::atomic<int> ran{0};
  run_exactly(threads, [&](const Team& team) {
    team.wait();
    ran += team.size() == threads ? 1 : 100;
  });
  return ran;
}

TEST(Team, AnExceptionReachesTheCaller) {
  for (const int thrower : {0, 1, 2}) {
    try {
      run_exactly(3, [&](const Team& team) {
        if (team.rank() == thrower) throw std::runtime_error("from " + std::to_string(thrower));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "from " + std::to_string(thrower));
    }
  }
  EXPECT_EQ(threads_that_ran(3), 3) << "the next call is as ever";
}

TEST(Team, AnExceptionReleasesThoseThatWait) {
  for (const int thrower : {0, 2}) {
    EXPECT_THROW(run_exactly(3,
                             [&](const Team& team) {
                               team.wait();
                               if (team.rank() == thrower) throw std::out_of_range("one");
                               team.wait();
                               team.wait();
                             }),
                 std::out_of_range);
  }
}

TEST(Team, RunsInTheChildOfAFork) {
  EXPECT_EQ(threads_that_ran(3), 3);
  EXPECT_EQ(in_child([] {
              if (threads_that_ran(3) != 3) return 1;
              try {
                run_exactly(2, [](const Team& team) {
                  if (team.rank() == 1) throw std::runtime_error("");
                });
              } catch (const std::runtime_error&) {
                return threads_that_ran(4) == 4 ? 0 : 3;
              }
              return 2;
            }),
            0);
  EXPECT_EQ(threads_that_ran(3), 3);
}

TEST(Team, NoRoomForThreadsIsAnError) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's shadow needs the address space that this test takes away";
#endif
  EXPECT_EQ(in_child([] {
              const rlimit little{std::size_t{64} << 20, std::size_t{64} << 20};
              if (setrlimit(RLIMIT_AS, &little) != 0) return 2;
              try {
                run_exactly(1000, [](const Team&) {});
              } catch (const Error& error) {
                return error.code() == ErrorCode::out_of_memory ? 0 : 3;
              }
              return 1;
            }),
            0);
}

}  // namespace
}  // namespace rung::cpu
