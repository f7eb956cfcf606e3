#include "api/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace rlx {
namespace {

using testing::HasSubstr;

class StateFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("rlx_state_" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) +
               "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "a.state").string();
    for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = static_cast<std::byte>(i * 7);
    state_.fingerprint = 0x123456789abcdef0u;
    state_.architecture = "llama";
    state_.computing = "float";
    state_.num_written = 3;
    state_.tokens = {5, 0, 77};
    state_.places = {{"cache.k.0", "f16", {1, 8, 2, 5}, keys_}, {"cache.v.0", "f16", {1, 8}, {}}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::byte> write() {
    write_state_file(path_, state_);
    std::ifstream stream(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }

  std::string error_of(std::span<const std::byte> bytes) {
    try {
      parse_state_file(bytes, "a.state");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
  std::string path_;
  std::vector<std::byte> keys_ = std::vector<std::byte>(60);
  StateFile state_;
};

TEST_F(StateFiles, ComeBackAsTheyWere) {
  const std::vector<std::byte> bytes = write();
  EXPECT_EQ(bytes.size() % 64, 0u);
  const StateFile read = parse_state_file(bytes, "a.state");
  EXPECT_EQ(read.fingerprint, state_.fingerprint);
  EXPECT_EQ(read.architecture, "llama");
  EXPECT_EQ(read.computing, "float");
  EXPECT_EQ(read.num_written, 3);
  EXPECT_EQ(read.tokens, state_.tokens);
  ASSERT_EQ(read.places.size(), 2u);
  EXPECT_EQ(read.places[0].name, "cache.k.0");
  EXPECT_EQ(read.places[0].dtype, "f16");
  EXPECT_EQ(read.places[0].shape, state_.places[0].shape);
  EXPECT_TRUE(std::equal(keys_.begin(), keys_.end(), read.places[0].bytes.begin(),
                         read.places[0].bytes.end()));
  EXPECT_TRUE(read.places[1].bytes.empty());
}

TEST_F(StateFiles, AreRefusedWhereverTheyAreCut) {
  const std::vector<std::byte> bytes = write();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = error_of(std::span(bytes).first(size));
    EXPECT_THAT(error, HasSubstr(size < 8 ? "not a saved state" : "cut or damaged")) << size;
  }
  std::vector<std::byte> longer = bytes;
  longer.resize(bytes.size() + 64);
  EXPECT_THAT(error_of(longer), HasSubstr("cut or damaged"));
}

TEST_F(StateFiles, AreRefusedWhicheverByteIsDamaged) {
  std::vector<std::byte> bytes = write();
  size_t num_padding = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    num_padding += error_of(bytes) == "no error";
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_EQ(num_padding, 64 - keys_.size());  // behind the keys; nothing reads it
  EXPECT_EQ(error_of(bytes), "no error");
}

TEST_F(StateFiles, NameAnotherVersion) {
  std::vector<std::byte> bytes = write();
  bytes[8] = std::byte{9};
  EXPECT_EQ(error_of(bytes), "a.state: The state has version 9, but this build reads version 1.");
}

TEST_F(StateFiles, LeaveTheOldFileWhenTheNewOneCannotBeWritten) {
  write();
  state_.tokens = {1};
  std::filesystem::create_directory(path_ + ".part");  // stands in the way of the temporary file
  EXPECT_THROW(write_state_file(path_, state_), Error);
  std::filesystem::remove(path_ + ".part");
  std::ifstream stream(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(parse_state_file(std::as_bytes(std::span(text)), "a").tokens.size(), 3u);
  EXPECT_THROW(write_state_file((folder_ / "none" / "a").string(), state_), Error);
}

}  // namespace
}  // namespace rlx
