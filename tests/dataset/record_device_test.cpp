#include "dataset/record_device.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

DeviceLabel label(const std::string& text) { return parse_device_label(text); }

DeviceLabel label_of(const std::string& target, const std::string& path) {
  Record record;
  record.target = target;
  return device_of_record(record, path);
}

TEST(DeviceLabel, HasWhatTellsDevicesApart) {
  const DeviceLabel gpu = label("cuda -keys=cuda,gpu  --arch=sm_70 -thread_warp_size=32 ");
  EXPECT_EQ(gpu.text, "cuda -keys=cuda,gpu --arch=sm_70 -thread_warp_size=32");
  EXPECT_EQ(gpu.kind, "cuda");
  EXPECT_EQ(gpu.attributes,
            (std::map<std::string, std::string>{{"arch", "sm_70"}, {"thread_warp_size", "32"}}));
  EXPECT_EQ(label("").kind, "");
  EXPECT_EQ(label("llvm - --").attributes.size(), 0u);
}

TEST(DeviceLabel, TakesAModelFromTheFolder) {
  EXPECT_EQ(label_of("cuda", "logs/k80/conv/a.json").text, "cuda -model=k80");
  EXPECT_EQ(label_of("cuda", "V100/a.json").text, "cuda -model=v100");
  EXPECT_EQ(label_of("cuda -model=t4", "k80/a.json").text, "cuda -model=t4");
  EXPECT_EQ(label_of("llvm", "k80/a.json").text, "llvm");
  EXPECT_EQ(label_of("rocm", "k80/a.json").text, "rocm");
  EXPECT_EQ(label_of("cuda", "k80.json").text, "cuda");
  EXPECT_EQ(label_of("cuda", "/a.json").text, "cuda");
}

TEST(DeviceLabel, OfOursIsItsMachine) {
  Record record;
  record.target = "llvm -mcpu=haswell";
  record.device = "one CPU";
  const DeviceLabel one = device_of_record(record, "a.json");
  record.device = "another CPU";
  EXPECT_FALSE(may_be_one_device(one, device_of_record(record, "a.json")));
}

TEST(DeviceLabel, MayBeOneDeviceUnlessTheyDiffer) {
  EXPECT_TRUE(may_be_one_device(label("cuda"), label("cuda -arch=sm_70")));
  EXPECT_TRUE(may_be_one_device(label("cuda -model=a100"), label("cuda -arch=sm_80")));
  EXPECT_FALSE(may_be_one_device(label("cuda -arch=sm_80"), label("cuda -arch=sm_70")));
  EXPECT_FALSE(may_be_one_device(label("cuda"), label("rocm")));
  EXPECT_FALSE(may_be_one_device(label("cuda -model=k80"), label("cuda -arch=sm_86")));
  EXPECT_TRUE(may_be_one_device(label("llvm -link-params=0"), label("llvm -link-params=1")));
}

TEST(DeviceLabel, IsTheDeviceThatAUserNames) {
  EXPECT_TRUE(is_device(label("cuda -arch=sm_70"), label("cuda")));
  EXPECT_TRUE(is_device(label("cuda -model=k80"), label("cuda --model=k80")));
  EXPECT_TRUE(is_device(label("cuda -arch=sm_80"), label("cuda -model=a100")));
  EXPECT_FALSE(is_device(label("cuda -arch=sm_70"), label("cuda -model=a100")));
  EXPECT_FALSE(is_device(label("cuda"), label("cuda -model=a100")));
  EXPECT_FALSE(is_device(label("llvm"), label("cuda")));
}

TEST(GroupDevices, JoinsThoseOfOneIdentity) {
  const std::vector<DeviceLabel> labels = {label("cuda -model=v100"),
                                           label("cuda -arch=sm_70 -model=v100"),
                                           label("cuda -model=k80"),
                                           label("cuda"),
                                           label("llvm")};
  EXPECT_EQ(group_devices(labels, false),
            (std::vector<std::string>{"cuda -arch=sm_70 -model=v100",
                                      "cuda -arch=sm_70 -model=v100",
                                      "cuda -model=k80",
                                      "cuda",
                                      "llvm"}));
}

TEST(GroupDevices, JoinsAllWhenTheyAreOne) {
  const std::vector<DeviceLabel> labels = {label("cuda"), label("cuda -arch=sm_70")};
  EXPECT_EQ(group_devices(labels, true), std::vector<std::string>(2, "cuda -arch=sm_70"));
}

TEST(DeviceIdentity, IsTheMostCertainThingSaid) {
  EXPECT_EQ(device_identity(label("cuda -arch=sm_70 -model=v100")), "cuda v100");
  EXPECT_EQ(device_identity(label("cuda -arch=sm_70")), "cuda sm_70");
  EXPECT_EQ(device_identity(label("llvm")), "llvm");
}

}  // namespace
}  // namespace pruner
