#include "report/device_table.h"

#include "golden.h"
#include "target/device_file.h"

namespace pruner {
namespace {

TEST(DeviceTable, ListsWhatIsHereAndWhatIsKnown) {
  const std::vector<Target> here = {*parse_target("llvm -mcpu=haswell", 2),
                                    *parse_target("opencl --model=t4", 0)};
  const std::vector<Target> known = {*read_device("a100_40"), *read_device("epyc_9004")};
  EXPECT_GOLDEN("report/devices.txt", print_devices(here, known));
  const Json json = devices_json(here, known);
  EXPECT_EQ(json["here"].size(), 2u);
  EXPECT_EQ(json["known"][0]["target"], "cuda --model=a100_40");
  EXPECT_DOUBLE_EQ(json["known"][0]["dram_gbs"].get<double>(), 1555);
  EXPECT_EQ(json["here"][0]["fingerprint"], device_fingerprint(here[0]));
}

TEST(DeviceTable, PrintsEveryFieldOfADevice) {
  EXPECT_GOLDEN("report/device_a100_40.txt", print_fields(target_to_json(*read_device("a100_40"))));
}

}  // namespace
}  // namespace pruner
