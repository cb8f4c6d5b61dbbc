#include "bundle/bundle.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "fleet/messages.h"
#include "measure/wire.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/output_file.h"

namespace pruner {

namespace {

constexpr std::string_view kAnyFormat = "pruner bundle ", kFormat = "pruner bundle 1\n";
constexpr std::string_view kHead = "head", kTask = "task", kProgram = "program", kEnd = "end";
constexpr std::string_view kUnsigned = "-";
// A line of an entry has at most so many bytes: two words, a signature, a hash and three numbers.
constexpr size_t kMostLine = 256;
// An entry has at most so many; a number beyond is no size but damage.
constexpr int64_t kMostBytes = int64_t{1} << 30;

Json to_json(const BundleHead& head) {
  return {{"version", head.version},
          {"target", print(head.target)},
          {"threads", head.target.threads},
          {"options", to_json(head.options)},
          {"network_bytes", head.network_bytes}};
}

Result<BundleHead> head_from_json(const Json& json) {
  BundleHead head;
  TRY_ASSIGN(head.version, json_get<std::string>(json, "version"));
  TRY_ASSIGN(const std::string target, json_get<std::string>(json, "target"));
  TRY_ASSIGN(const int threads, json_get<int>(json, "threads"));
  TRY_ASSIGN(head.target, parse_target(target, threads));
  TRY_ASSIGN(const Json options, json_get<Json>(json, "options"));
  TRY_ASSIGN(head.options, options_from_json(options));
  TRY_ASSIGN(head.network_bytes, json_get<int64_t>(json, "network_bytes"));
  return head;
}

/// Returns the result in the record of a program that is not measured yet.
MeasureResult not_measured() { return failed_result(MeasureError::kUnknown, "not measured"); }

Result<BundledProgram> program_from_json(const Json& json, std::string object) {
  BundledProgram program;
  TRY_ASSIGN(program.task, json_get<std::string>(json, "task"));
  TRY_ASSIGN(const std::string line, json_get<std::string>(json, "record"));
  TRY_ASSIGN(program.record, parse_line(line));
  TRY_ASSIGN(Json header, json_get<Json>(json, "build"));
  TRY_ASSIGN(program.build, build_from_frame({std::move(header), std::move(object)}));
  program.record.result = {};
  return program;
}

/// Returns the text that an entry's signature and hash cover: all of the entry's content.
std::string content(std::string_view kind, std::string_view json, std::string_view object) {
  std::string all(kind);
  all.append("\n").append(json).append("\n").append(object);
  return all;
}

/// The line in front of an entry.
struct EntryLine {
  std::string kind, signature, hash;
  int64_t json_bytes = -1, object_bytes = -1, packed_bytes = -1;

  std::string print() const {
    return fmt::format(
        "{} {} {} {} {} {}\n", kind, signature, hash, json_bytes, object_bytes, packed_bytes);
  }
};

std::optional<int64_t> parse_size(std::string_view word) {
  int64_t value = -1;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size() || value < 0 || value > kMostBytes)
    return std::nullopt;
  return value;
}

std::optional<EntryLine> parse_entry_line(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.size() != 6) return std::nullopt;
  const std::optional<int64_t> json_bytes = parse_size(words[3]);
  const std::optional<int64_t> object_bytes = parse_size(words[4]);
  const std::optional<int64_t> packed_bytes = parse_size(words[5]);
  if (!json_bytes || !object_bytes || !packed_bytes) return std::nullopt;
  return EntryLine{std::string(words[0]),
                   std::string(words[1]),
                   std::string(words[2]),
                   *json_bytes,
                   *object_bytes,
                   *packed_bytes};
}

/// A file that may be written over: none, or a bundle.
Result<Unit> check_replaceable(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Unit{};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error(path, ": cannot be read: ", std::strerror(errno));
  std::string begin(kFormat.size(), '\0');
  in.read(begin.data(), std::ssize(begin));
  if (begin.starts_with(kAnyFormat)) return Unit{};
  return Error(path, ": is there and no bundle; it is left alone");
}

}  // namespace

struct BundleWriter::File {
  std::string path;
  int fd = -1;
  // Why an entry is missing: what would come behind it could not be unpacked.
  std::optional<Error> failed = {};

  ~File() {
    if (fd >= 0) close(fd);
  }
};

BundleWriter::BundleWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
BundleWriter::BundleWriter(BundleWriter&&) noexcept = default;
BundleWriter& BundleWriter::operator=(BundleWriter&&) noexcept = default;

// A bundle without its end is one that was cut short, so there is nobody to tell of an error here.
BundleWriter::~BundleWriter() {
  if (file_ != nullptr) (void)write(kEnd, {{"programs", programs_}}, "");
}

Result<BundleWriter> BundleWriter::open(const std::string& path,
                                        const BundleHead& head,
                                        const NKey* builder) {
  TRY(check_replaceable(path));
  auto file = std::make_unique<File>(path);
  file->fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file->fd < 0) return cannot_write(path);
  if (flock(file->fd, LOCK_EX | LOCK_NB) != 0)
    return Error(path, ": another pruner is writing to it");
  if (ftruncate(file->fd, 0) != 0 || !write_whole(file->fd, kFormat)) return cannot_write(path);
  BundleWriter writer(std::move(file));
  if (builder != nullptr) writer.builder_ = *builder;
  TRY(writer.write(kHead, to_json(head), ""));
  return writer;
}

Result<Unit> BundleWriter::write(std::string_view kind, const Json& json, std::string_view object) {
  if (file_->failed) return *file_->failed;
  const std::string text = json.dump();
  const std::string all = content(kind, text, object);
  EntryLine line{.kind = std::string(kind),
                 .signature = std::string(kUnsigned),
                 .hash = hash_hex(all),
                 .json_bytes = std::ssize(text),
                 .object_bytes = std::ssize(object)};
  if (builder_) {
    TRY_ASSIGN(line.signature, sign(*builder_, all));
  }
  TRY_ASSIGN(const std::string packed, packer_.pack(text + std::string(object)));
  line.packed_bytes = std::ssize(packed);
  const Result<Unit> written = append_whole(file_->fd, file_->path, line.print() + packed);
  if (!written.ok()) file_->failed = written.error();
  return written;
}

Result<Unit> BundleWriter::append(const Task& task, const Record& record, const Build& build) {
  const std::string printed = print_task(task);
  const std::string hash = task_hash(printed);
  if (tasks_.insert(hash).second) TRY(write(kTask, {{"task", printed}}, ""));
  Record pending = record;
  pending.result = not_measured();
  const Frame frame = to_frame(build);
  TRY(write(kProgram,
            {{"task", hash}, {"record", print_line(pending)}, {"build", frame.header}},
            frame.body));
  ++programs_;
  return Unit{};
}

Error BundleReader::damaged(std::string_view how) const {
  return Error(path_, ": entry ", entries_ + 1, ' ', how);
}

Result<BundleReader> BundleReader::open(const std::string& path, BundleTrust trust) {
  TRY(check_readable(path));
  BundleReader reader;
  reader.path_ = path;
  reader.trust_ = std::move(trust);
  reader.in_.open(path, std::ios::binary | std::ios::ate);
  if (!reader.in_) return Error(path, ": cannot be read: ", std::strerror(errno));
  reader.file_bytes_ = reader.in_.tellg();
  reader.in_.seekg(0);
  std::string format(kFormat.size(), '\0');
  reader.in_.read(format.data(), std::ssize(format));
  if (!format.starts_with(kAnyFormat))
    return Error(path, ": is no bundle (`pruner tune --build-only`)");
  if (format != kFormat)
    return Error(path, ": is a bundle of another format, made by another version of pruner");
  TRY_ASSIGN(const std::optional<Entry> first, reader.next_entry());
  if (!first || first->kind != kHead) return Error(path, ": is a bundle without its head");
  Result<BundleHead> head = head_from_json(first->json);
  if (!head.ok()) return Error(path, ": ", head.error().message());
  reader.head_ = *std::move(head);
  return reader;
}

Result<std::optional<BundleReader::Entry>> BundleReader::next_entry() {
  std::string text;
  for (int c = in_.get(); c != std::ifstream::traits_type::eof(); c = in_.get()) {
    if (c == '\n') break;
    text += static_cast<char>(c);
    if (text.size() > kMostLine) return damaged("does not begin with its line");
  }
  if (in_.eof()) return std::optional<Entry>();
  const std::optional<EntryLine> line = parse_entry_line(text);
  if (!line) return damaged("does not begin with its line");
  if (line->packed_bytes > file_bytes_ - in_.tellg()) return std::optional<Entry>();
  std::string packed(static_cast<size_t>(line->packed_bytes), '\0');
  in_.read(packed.data(), line->packed_bytes);
  if (!in_) return damaged("cannot be read");
  const auto json_bytes = static_cast<size_t>(line->json_bytes);
  const Result<std::string> piece =
      unpacker_.unpack(packed, json_bytes + static_cast<size_t>(line->object_bytes));
  if (!piece.ok()) return damaged("is damaged");
  const std::string json = piece->substr(0, json_bytes);
  std::string object = piece->substr(json_bytes);
  const std::string all = content(line->kind, json, object);
  if (hash_hex(all) != line->hash) return damaged("is damaged");
  const auto signed_by = [&](const std::string& key) {
    return is_signed_by(key, all, line->signature);
  };
  if (!trust_.anybody && std::ranges::none_of(trust_.keys, signed_by))
    return damaged(line->signature == kUnsigned
                       ? "is signed by nobody; --unsigned runs it all the same"
                       : "is signed by nobody in the file of --trust");
  Result<Json> parsed = parse_json(json);
  if (!parsed.ok()) return damaged("is damaged");
  ++entries_;
  return std::optional(Entry{line->kind, *std::move(parsed), std::move(object)});
}

Result<std::optional<BundledProgram>> BundleReader::next() {
  while (true) {
    TRY_ASSIGN(std::optional<Entry> entry, next_entry());
    if (!entry) return std::optional<BundledProgram>();
    ended_ = entry->kind == kEnd;
    if (ended_) return std::optional<BundledProgram>();
    if (entry->kind == kTask) {
      TRY_ASSIGN(const std::string printed, json_get<std::string>(entry->json, "task"));
      Result<Task> task = parse_task(printed);
      if (!task.ok()) return Error(path_, ": ", task.error().message());
      tasks_.insert_or_assign(task_hash(printed), *std::move(task));
      continue;
    }
    if (entry->kind != kProgram) continue;
    Result<BundledProgram> program = program_from_json(entry->json, std::move(entry->object));
    if (!program.ok()) return Error(path_, ": ", program.error().message());
    if (!tasks_.contains(program->task))
      return Error(path_, ": a program of a task that is not in it");
    return std::optional(*std::move(program));
  }
}

}  // namespace pruner
