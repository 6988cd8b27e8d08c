// SPDX-License-Identifier: Apache-2.0
// Teams of threads: the assignment of ranks, and the behavior when threads are late, when a body
// throws, after fork(), and when threads cannot be created.
#include "rung/cpu/team.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <vector>

#include "rung/core/error.hpp"
#include "rung/cpu/team_hooks.hpp"

namespace rung::cpu {
namespace {

/// Runs body in a child process that is killed after 20 s; returns its exit status, or -1 if a
/// signal ended it.
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

using Cores = team_hooks::AssumedCores;

/// Keeps every worker out of calls for one scope: workers that join a call block until the end of
/// the scope.
class HeldWorkers {
 public:
  HeldWorkers() {
    held = true;
    team_hooks::before_joining = [](int) { held.wait(true); };
  }
  ~HeldWorkers() {
    team_hooks::before_joining = nullptr;
    held = false;
    held.notify_all();
  }

 private:
  static inline std::atomic<bool> held{false};
};

/// Returns the threads that ran the ranks of run_shares(ranks), by rank.
std::vector<std::thread::id> threads_of_shares(int ranks) {
  std::vector<std::thread::id> threads(static_cast<std::size_t>(ranks));
  run_shares(ranks, [&](const Team& team) {
    threads[static_cast<std::size_t>(team.rank())] = std::this_thread::get_id();
  });
  return threads;
}

int size_of_team(int threads) {
  std::atomic<int> size{0};
  run_team(threads, [&](const Team& team) {
    team.wait();
    if (team.rank() == 0) size = team.size();
  });
  return size;
}

/// Calls attempt() until it returns true, for two minutes at most: other programs may use the
/// cores.
template <class Attempt>
bool sooner_or_later(const Attempt& attempt) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!attempt()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

TEST(Team, EachShareRunsOnce) {
  const Cores cores(3);
  for (const int ranks : {1, 2, 3, 63, 64, 65, 200}) {
    for (int again = 0; again < 2000; ++again) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(ranks));
      std::atomic<int> other_sizes{0};
      run_shares(ranks, [&](const Team& team) {
        ++runs.at(static_cast<std::size_t>(team.rank()));
        if (team.size() != ranks) ++other_sizes;
      });
      EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }))
          << ranks;
      EXPECT_EQ(other_sizes, 0);
    }
  }
}

TEST(Team, EachRankHasAThreadOfItsOwn) {
  for (const int threads : {2, 3, 7}) {
    std::vector<std::thread::id> seen(static_cast<std::size_t>(threads));
    run_exactly(threads, [&](const Team& team) {
      EXPECT_EQ(team.size(), threads);
      seen.at(static_cast<std::size_t>(team.rank())) = std::this_thread::get_id();
      team.wait();
    });
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), seen.size());
    EXPECT_EQ(seen.front(), std::this_thread::get_id());
  }
}

TEST(Team, WorkersRunShares) {
  const Cores cores(2);
  EXPECT_TRUE(sooner_or_later([] {
    std::thread::id of_second;
    run_shares(2, [&](const Team& team) {
      // Gives the worker time to take the second rank.
      if (team.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (team.rank() == 1) of_second = std::this_thread::get_id();
    });
    return of_second != std::this_thread::get_id();
  }));
}

TEST(Team, TheCallerRunsTheSharesOfLateWorkers) {
  const Cores cores(3);
  const HeldWorkers held;
  for (int again = 0; again < 5; ++again) {
    const std::vector<std::thread::id> threads = threads_of_shares(9);
    EXPECT_EQ(std::count(threads.begin(), threads.end(), std::this_thread::get_id()), 9);
  }
}

TEST(Team, LateWorkersHaveNoRank) {
  const Cores cores(3);
  const HeldWorkers held;
  for (int again = 0; again < 5; ++again) EXPECT_EQ(size_of_team(3), 1);
}

TEST(Team, AWorkerThatWasLateComesBack) {
  const Cores cores(2);
  {
    const HeldWorkers held;
    EXPECT_EQ(size_of_team(2), 1);
  }
  EXPECT_TRUE(sooner_or_later([] { return size_of_team(2) == 2; }));
}

TEST(Team, AWorkerThatLostItsCoreIsLeftOutForAWhile) {
  const Cores cores(2);
  EXPECT_TRUE(sooner_or_later([] { return size_of_team(2) == 2; }));
  team_hooks::note_loss(0, 1.0);
  const auto begin = std::chrono::steady_clock::now();
  const int size = size_of_team(2);
  // Valid only if this test did not lose its own core for that long.
  if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(400)) {
    EXPECT_EQ(size, 1);
  }
  EXPECT_TRUE(sooner_or_later([] { return size_of_team(2) == 2; }));
}

TEST(Team, HasNoMoreThreadsThanCores) {
  std::thread([] {  // a thread without workers yet
    const Cores cores(2);
    const int before = team_hooks::workers();
    for (int again = 0; again < 20; ++again) {
      EXPECT_LE(size_of_team(8), 2);
      threads_of_shares(8);
    }
    EXPECT_LE(team_hooks::workers(), before + 1);
  })
      .join();
}

TEST(Team, WithinABodyRunsOnTheSameThread) {
  const Cores cores(3);
  for (const Ranks outer : {Ranks::independent, Ranks::exact}) {
    run_ranks(outer, 3, [](const Team&) {
      const std::thread::id self = std::this_thread::get_id();
      int shares = 0;
      run_shares(4, [&](const Team& team) {
        EXPECT_EQ(team.rank(), shares++);
        EXPECT_EQ(std::this_thread::get_id(), self);
      });
      EXPECT_EQ(shares, 4);
      for (const Ranks inner : {Ranks::concurrent, Ranks::exact}) {
        run_ranks(inner, 4, [&](const Team& team) {
          team.wait();
          EXPECT_EQ(team.size(), 1);
          EXPECT_EQ(std::this_thread::get_id(), self);
        });
      }
    });
  }
}

TEST(Team, ManyCallsInARow) {
  const Cores cores(3);
  // Not atomic: calls are ordered.
  std::vector<int> runs(3), read(3);
  for (int call = 1; call <= 5000; ++call) {
    run_shares(3, [&](const Team& team) { ++runs[static_cast<std::size_t>(team.rank())]; });
    run_team(3, [&](const Team& team) {
      const auto rank = static_cast<std::size_t>(team.rank());
      read[rank] = runs[0] + runs[1] + runs[2];
      team.wait();
      const auto next = static_cast<std::size_t>((team.rank() + 1) % team.size());
      EXPECT_EQ(read[next], 3 * call);
      team.wait();
    });
  }
  EXPECT_EQ(runs, std::vector<int>(3, 5000));
}

TEST(Team, HasAllThreadsWhereThereAreEnoughCores) {
  const Cores cores(team_hooks::enough_cores);
  EXPECT_EQ(size_of_team(7), 7);
}

TEST(Team, ThreadsHaveWorkersOfTheirOwnWhichEndWithThem) {
  const int before = team_hooks::workers();
  std::atomic<int> ran{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int call = 0; call < 50; ++call) ran += threads_that_ran(3);
      });
    }
  }
  EXPECT_EQ(ran, 4 * 50 * 3);
  EXPECT_EQ(team_hooks::workers(), before);
}

TEST(Team, WaitingWithinSharesIsAnError) {
  try {
    run_shares(2, [](const Team& team) { team.wait(); });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
  }
}

TEST(Team, AnExceptionSkipsSharesThatHaveNotStarted) {
  std::thread([] {  // a new thread, whose workers have not been excluded
    for (const int assumed : {1, 3}) {
      const Cores cores(assumed);
      const HeldWorkers held;
      int ran = 0;
      const auto throws_at_once = [&](const Team&) {
        ++ran;
        throw std::runtime_error("from a share");
      };
      EXPECT_THROW(run_shares(5, throws_at_once), std::runtime_error);
      EXPECT_EQ(ran, 1);
    }
  })
      .join();
  for (const int thrower : {0, 1, 4}) {
    const Cores more_cores(3);
    EXPECT_THROW(run_shares(5,
                            [&](const Team& team) {
                              if (team.rank() == thrower) throw std::out_of_range("one");
                            }),
                 std::out_of_range);
  }
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

TEST(Team, SharesRunInTheChildOfAFork) {
  const Cores cores(2);
  EXPECT_EQ(threads_of_shares(5).size(), 5u);
  EXPECT_EQ(in_child([] {
              for (int call = 0; call < 100; ++call) {
                std::atomic<int> ran{0};
                run_shares(5, [&](const Team&) { ++ran; });
                if (ran != 5) return 1;
              }
              return 0;
            }),
            0);
}

TEST(Team, ABodyMayExitAfterAFork) {
  EXPECT_EQ(in_child([] {
              run_exactly(2, [](const Team& team) {
                if (team.rank() == 0) std::exit(7);
                team.wait();
              });
              return 1;
            }),
            7);
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
