#include "support/npz.h"

#include <cstring>
#include <filesystem>

#include "golden.h"

namespace pruner {
namespace {

std::string temporary_path(const char* name) {
  return testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_" + name;
}

/// Bytes of `values`, as an array holds them.
template <typename T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// np.savez (plain.npz) and np.savez_compressed (compressed.npz) of
//   x = arange(6, dtype=float32).reshape(2, 3); i = array([7, -1]); s = array(2.5); e = zeros((0,
//   4), bool) f = asfortranarray(arange(24, dtype=int16).reshape(2, 3, 4))
void expect_numpys(const std::string& file) {
  const Result<std::vector<NpyArray>> arrays = read_npz(test_path("support/data/" + file));
  ASSERT_TRUE(arrays.ok()) << arrays.error().message();
  ASSERT_EQ(arrays->size(), 5u);
  const std::vector<NpyArray>& a = *arrays;
  EXPECT_EQ(a[0].name, "x");
  EXPECT_EQ(a[0].type, "<f4");
  EXPECT_EQ(a[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a[0].bytes, bytes_of<float>({0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(a[1].type, "<i8");
  EXPECT_EQ(a[1].bytes, bytes_of<int64_t>({7, -1}));
  EXPECT_EQ(a[2].shape, std::vector<int64_t>{});
  EXPECT_EQ(a[2].bytes, bytes_of<double>({2.5}));
  EXPECT_EQ(a[3].type, "|b1");
  EXPECT_EQ(a[3].shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(a[3].bytes, "");
  std::vector<int16_t> count(24);
  for (int16_t i = 0; i < 24; ++i) count[static_cast<size_t>(i)] = i;
  EXPECT_EQ(a[4].shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(a[4].bytes, bytes_of(count));
}

TEST(ReadNpz, ReadsWhatNumpySaves) {
  expect_numpys("plain.npz");
  expect_numpys("compressed.npz");
}

TEST(WriteNpz, IsReadBack) {
  const std::string path = temporary_path("round.npz");
  const std::vector<NpyArray> written = {{"a", "<f4", {2}, bytes_of<float>({1, 2})},
                                         {"b/0", "<i4", {}, bytes_of<int32_t>({3})},
                                         {"none", "|i1", {3, 0}, ""}};
  ASSERT_TRUE(write_npz(path, written).ok());
  ASSERT_TRUE(write_npz(path, written).ok());  // over the old one
  const Result<std::vector<NpyArray>> read = read_npz(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*read)[i].name, written[i].name);
    EXPECT_EQ((*read)[i].type, written[i].type);
    EXPECT_EQ((*read)[i].shape, written[i].shape);
    EXPECT_EQ((*read)[i].bytes, written[i].bytes);
  }
  std::filesystem::remove(path);
}

TEST(WriteNpz, LoadsInNumpy) {
  std::string python;
  for (const char* each : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(each) + " -c 'import numpy' 2>/dev/null").c_str()) == 0)
      python = each;
  }
  if (python.empty()) GTEST_SKIP() << "no numpy here";
  const std::string path = temporary_path("numpy.npz");
  const std::vector<NpyArray> arrays = {{"a", "<f4", {2, 1}, bytes_of<float>({1, 2})},
                                        {"b", "<i8", {}, bytes_of<int64_t>({3})}};
  ASSERT_TRUE(write_npz(path, arrays).ok());
  const std::string program =
      "import numpy as np; z = np.load('" + path + "'); a, b = z['a'], z['b']; " +
      "assert a.dtype == np.float32 and a.tolist() == [[1], [2]] and b.shape == () and b == 3";
  EXPECT_EQ(std::system((python + " -c \"" + program + "\"").c_str()), 0);
  std::filesystem::remove(path);
}

TEST(ReadNpz, SaysWhatIsWrong) {
  EXPECT_ERROR(read_npz("/nowhere/x.npz"), "/nowhere/x.npz: no such file");
  EXPECT_ERROR(read_npz(test_path("support/npz_test.cpp")), "Not a zip archive");
  EXPECT_ERROR(read_npz(test_path("support/data/objects.npz")),
               "array \"o\": its type '|O' has no plain");
  EXPECT_ERROR(read_npz(test_path("support/data/big_endian.npz")), "array \"x\": its type '>f4'");
  EXPECT_ERROR(write_npz("/nowhere/x.npz", std::vector<NpyArray>{{"a", "|b1", {0}, ""}}),
               "/nowhere/x.npz");
}

// Whatever bytes are damaged: an error or other values, never a crash.
TEST(ReadNpz, SurvivesDamage) {
  const Result<std::string> good = read_file(test_path("support/data/compressed.npz"));
  ASSERT_TRUE(good.ok());
  const std::string path = temporary_path("damaged.npz");
  for (size_t i = 0; i < good->size(); ++i) {
    std::string bad = *good;
    bad[i] = static_cast<char>(bad[i] ^ 0x5a);
    ASSERT_TRUE(write_file(path, bad).ok());
    (void)read_npz(path);
    ASSERT_TRUE(write_file(path, good->substr(0, i)).ok());
    EXPECT_FALSE(read_npz(path).ok() && i > 0) << "cut at " << i;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace pruner
