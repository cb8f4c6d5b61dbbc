// Bundles: candidates with their built programs in one file. A machine that has no compiler, or has
// the device for a short time only, then does nothing but measure.
//
// A bundle is a line that names the format, then entries: the head, tasks, programs. An entry is a
// line "KIND SIGNATURE HASH JSON-BYTES OBJECT-BYTES PACKED-BYTES", and then its JSON and object;
// zstd packs these with what came before. Entries are appended whole, so a bundle that was cut
// short has all before; the last entry is its end.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/nkey.h"
#include "measure/build_worker.h"
#include "measure/measure.h"
#include "record/record.h"
#include "support/zstd.h"

namespace pruner {

/// The facts that a bundle holds once for all its programs.
struct BundleHead {
  std::string version = {};  // version of the pruner that made the bundle
  Target target;
  MeasureOptions options = {};  // options with which the programs are measured
  int64_t network_bytes = 0;    // weights and arena of the programs' network; 0: an operator
};

/// A program of a task of the bundle.
struct BundledProgram {
  std::string task;  // task_hash()
  Record record;     // the trial's, without a result
  Build build;       // or why there is none; a CPU's object is a shared library
};

/// Writes a bundle, one entry after the other. A call returns when the operating system has the
/// entry: if the program crashes nothing is lost. The end is written when the writer goes.
class BundleWriter {
 public:
  /// A bundle that is there is written anew; any other file is left alone, which is an error.
  /// `builder` signs the programs; null: nobody does.
  static Result<BundleWriter> open(const std::string& path,
                                   const BundleHead& head,
                                   const NKey* builder);
  /// The task goes into the file with its first program.
  Result<Unit> append(const Task& task, const Record& record, const Build& build);
  int64_t programs() const { return programs_; }

  BundleWriter(BundleWriter&&) noexcept;
  BundleWriter& operator=(BundleWriter&&) noexcept;
  ~BundleWriter();

 private:
  struct File;
  explicit BundleWriter(std::unique_ptr<File> file);
  Result<Unit> write(std::string_view kind, const Json& json, std::string_view object);

  std::unique_ptr<File> file_;
  PiecePacker packer_;
  std::optional<NKey> builder_;
  std::set<std::string> tasks_;
  int64_t programs_ = 0;
};

/// The builders whose programs are run: those who sign with one of the keys, or anybody.
struct BundleTrust {
  std::vector<std::string> keys = {};  // public keys
  bool anybody = false;
};

/// Reads a bundle from its beginning to its end.
class BundleReader {
 public:
  /// Fails if the file is no bundle, has another format, or its head is not signed by a trusted
  /// key.
  static Result<BundleReader> open(const std::string& path, BundleTrust trust);

  const BundleHead& head() const { return head_; }
  /// The next program; nullopt at the end. Fails if an entry is damaged, or not signed by a trusted
  /// key.
  Result<std::optional<BundledProgram>> next();
  /// Returns the task of a program that next() gave, by BundledProgram::task.
  const Task& task(const std::string& hash) const { return tasks_.at(hash); }
  /// Known at the end: the file has no end, as its build or its copying was stopped.
  bool cut_short() const { return !ended_; }

 private:
  struct Entry {
    std::string kind;
    Json json;
    std::string object;
  };
  Result<std::optional<Entry>> next_entry();
  Error damaged(std::string_view how) const;

  std::string path_;
  std::ifstream in_;
  PieceUnpacker unpacker_;
  BundleTrust trust_;
  BundleHead head_;
  std::map<std::string, Task> tasks_;
  int64_t file_bytes_ = 0, entries_ = 0;
  bool ended_ = false;
};

}  // namespace pruner
