// SPDX-License-Identifier: Apache-2.0
// Output files are written completely or not at all, whichever other process writes, whatever is at
// their path, and however the process ends.
#include "rung/harness/file_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.hpp"
#include "npy_file.hpp"

namespace rung::test {
namespace {

namespace fs = std::filesystem;

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status;
}

/// Runs body in a child process; returns its wait status. Signals end the child even if this
/// process was started with some of them ignored, as a shell script starts background processes.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST(FileWriter, WritersOfOnePathLeaveTheContentOfOne) {
  const TemporaryDirectory directory;
  const std::array<std::string, 2> contents = {std::string(50000, 'a'), std::string(70000, 'b')};
  for (int round = 0; round < 50; ++round) {
    const std::string path = directory.file("both");
    std::vector<std::thread> writers;
    for (const std::string& content : contents) {
      writers.emplace_back([&] { rung::write_file(path, content); });
    }
    for (std::thread& writer : writers) writer.join();
    const std::string found = read_file(path);
    ASSERT_TRUE(found == contents[0] || found == contents[1]) << found.size() << " bytes";
  }
  EXPECT_EQ(directory.files(), 1);
}

TEST(FileWriter, WithoutCommitTheOldContentStays) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("kept");
  rung::write_file(path, "old");
  {
    FileWriter file(path);
    file.write("new");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(directory.files(), 1);
}

TEST(FileWriter, AKilledWriterLeavesNothing) {
  const TemporaryDirectory directory;
  for (const int signal : {SIGKILL, SIGINT, SIGTERM}) {
    const int status = in_child([&] {
      FileWriter file(directory.file("killed"));
      file.write("half of it");
      raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    EXPECT_EQ(directory.files(), 0) << "signal " << signal;
  }
}

TEST(FileWriter, ReplacesWhatALinkPointsTo) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.file("inner"));
  rung::write_file(directory.file("inner/target"), "old");
  fs::create_symlink("inner/target", directory.file("link"));
  fs::create_symlink("link", directory.file("link_to_link"));
  rung::write_file(directory.file("link_to_link"), "new");
  EXPECT_TRUE(fs::is_symlink(directory.file("link")));
  EXPECT_TRUE(fs::is_symlink(directory.file("link_to_link")));
  EXPECT_EQ(read_file(directory.file("inner/target")), "new");
  fs::create_symlink("inner/absent", directory.file("dangling"));
  rung::write_file(directory.file("dangling"), "made");
  EXPECT_EQ(read_file(directory.file("inner/absent")), "made");
}

TEST(FileWriter, PredictableNamesBesideTheTargetAreNotTouched) {
  const TemporaryDirectory directory;
  const std::string victim = directory.file("victim");
  rung::write_file(victim, "precious");
  const std::string path = directory.file("out");
  for (const std::string& name : {path + ".partial." + std::to_string(getpid()),
                                  path + "." + std::to_string(getpid()), path + ".tmp"}) {
    fs::create_symlink("victim", name);
  }
  rung::write_file(path, "content");
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_EQ(read_file(path), "content");
}

TEST(FileWriter, KeepsModeAndOwner) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("owned");
  rung::write_file(path, "old");
  ASSERT_EQ(chmod(path.c_str(), 0604), 0);
  const bool root = geteuid() == 0;
  if (root) ASSERT_EQ(chown(path.c_str(), 12345, 23456), 0);
  const struct stat before = status_of(path);
  rung::write_file(path, "new");
  const struct stat after = status_of(path);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_EQ(read_file(path), "new");
}

TEST(FileWriter, AFileOfSomebodyElseIsRewrittenInPlace) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a file of somebody else's";
  const TemporaryDirectory directory;
  const std::string path = directory.file("theirs");
  rung::write_file(path, "something longer");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(chmod(directory.file(".").c_str(), 0777), 0);
  const auto inode = status_of(path).st_ino;
  const int status = in_child([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    rung::write_file(path, "short");
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path), "short");
  EXPECT_EQ(status_of(path).st_ino, inode);
  EXPECT_EQ(status_of(path).st_uid, 0U);
  EXPECT_EQ(directory.files(), 1);
}

TEST(FileWriter, AProtectedFileIsAnError) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("protected");
  rung::write_file(path, "old");
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(chmod(directory.file(".").c_str(), 0777), 0);
  const int status = in_child([&] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    try {
      rung::write_file(path, "new");
    } catch (const Error& error) {
      _exit(std::string(error.what()).find("Permission denied") != std::string::npos ? 7 : 3);
    }
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_EQ(read_file(path), "old");
}

TEST(FileWriter, TakesTheLongestName) {
  const TemporaryDirectory directory;
  const std::string path = directory.file(std::string(255, 'n'));
  rung::write_file(path, "content");
  EXPECT_EQ(read_file(path), "content");
}

TEST(FileWriter, DevicesAreWrittenToAndNeverReplaced) {
  rung::write_file("/dev/null", "content");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  expect_error(ErrorCode::io, {"/dev/full", "cannot write", "No space left"},
               [] { rung::write_file("/dev/full", "content"); });
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(FileWriter, AFifoTakesTheContent) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::string found;
  std::thread reader([&] { found = read_file(path); });
  rung::write_file(path, "through the pipe");
  reader.join();
  EXPECT_EQ(found, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(FileWriter, AnOpenDescriptorIsWrittenToWhereItStands) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("redirected");
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(write(descriptor, "before ", 7), 7);
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  fs::create_symlink(name, directory.file("link"));
  rung::write_file(directory.file("link"), "content");
  EXPECT_EQ(write(descriptor, " after", 6), 6);
  close(descriptor);
  EXPECT_EQ(read_file(path), "before content after");
}

TEST(FileWriter, NamesWhatCannotBeWritten) {
  const TemporaryDirectory directory;
  expect_error(ErrorCode::io, {"absent/file", "cannot create", "No such file"},
               [&] { rung::write_file(directory.file("absent/file"), ""); });
  expect_error(ErrorCode::io, {"Is a directory"},
               [&] { rung::write_file(directory.file("."), ""); });
}

}  // namespace
}  // namespace rung::test
