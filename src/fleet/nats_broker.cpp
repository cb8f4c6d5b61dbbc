#include "fleet/nats_broker.h"

#if PRUNER_NATS
#include <arpa/inet.h>
#include <nats/nats.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <thread>
#include <utility>

#include "fleet/names.h"
#include "fleet/nkey.h"
#include "support/file.h"
#include "support/json.h"
#endif

namespace pruner {

#if !PRUNER_NATS

bool has_nats() { return false; }
Result<std::unique_ptr<Broker>> connect_nats(const BrokerAccess&) {
  return Error("this build has no fleets: install libnats-dev and build again");
}

#else

bool has_nats() { return true; }

namespace {

constexpr int64_t kMs = 1000;           // milliseconds per second
constexpr int64_t kNs = 1'000'000'000;  // nanoseconds per second
constexpr int64_t kConnectMs = 5000;
constexpr int kSignatures = 4;             // tries of a client to connect
constexpr int64_t kWaitMs = 5000;          // patience for the server's answer
constexpr int64_t kWorkBytes = 256 << 20;  // limit of waiting trials, or objects
constexpr int64_t kDuplicatesS = 600;
constexpr int64_t kResultsAgeS = 7 * 24 * 3600;
constexpr int64_t kHeartbeatLifeS = 15;
constexpr std::array<int, 3> kSafeVersion = {2, 11, 16};  // the first without the holes of 2026

Result<Unit> check(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return Unit{};
  std::string text = natsStatus_GetText(status);
  natsStatus last = NATS_OK;
  const char* said = nats_GetLastError(&last);
  std::string detail = said == nullptr || last != status ? "" : said;
  // "(conn.c:1905): " is a place in libnats.
  if (const size_t end = detail.find("): "); detail.starts_with('(') && end != std::string::npos)
    detail.erase(0, end + 3);
  if (!detail.empty()) text += ": " + detail;
  return Error(what, ": ", text);
}

// "nats://host:4222" -> its host and port.
struct Address {
  std::string host, port = "4222";
};
Result<Address> address_of(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string name = scheme == std::string::npos ? "" : url.substr(0, scheme);
  if (name != "nats" && name != "tls")
    return Error(
        "\"", url, "\" is no server's address, expected nats://HOST:4222 or tls://HOST:4222");
  std::string rest = url.substr(scheme + 3);
  rest.erase(0, rest.rfind('@') == std::string::npos ? 0 : rest.rfind('@') + 1);
  Address address;
  const size_t colon = rest.rfind(':');
  const bool v6 = rest.starts_with('[');
  const bool port = colon != std::string::npos && (!v6 || colon > rest.find(']'));
  address.host = rest.substr(0, port ? colon : rest.size());
  if (port) address.port = rest.substr(colon + 1);
  if (v6) address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty()) return Error("\"", url, "\" names no host");
  return address;
}

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// The line that a server sends first, before any encryption.
Result<std::string> first_line(const Address& address) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
      code != 0)
    return Error(gai_strerror(code));
  Error problem("nobody answers there");
  std::string line;
  for (const addrinfo* each = found; each != nullptr && line.empty(); each = each->ai_next) {
    const int socket =
        ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    if (socket < 0) continue;
    const timeval patience = {kConnectMs / kMs, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(socket, each->ai_addr, each->ai_addrlen) != 0) {
      problem = Error(std::strerror(errno));
    } else {
      char bytes[4096];
      ssize_t got = 0;
      while (line.find('\n') == std::string::npos && line.size() < sizeof bytes * 16 &&
             (got = recv(socket, bytes, sizeof bytes, 0)) > 0)
        line.append(bytes, static_cast<size_t>(got));
      if (line.empty()) problem = Error("it says nothing");
    }
    close(socket);
  }
  freeaddrinfo(found);
  if (line.empty()) return problem;
  return line.substr(0, line.find('\r'));
}

std::array<int, 3> version_of(std::string_view text) {
  std::array<int, 3> version = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int& number : version) {
    at = std::from_chars(at, end, number).ptr;
    if (at != end && *at == '.') ++at;
  }
  return version;
}

// Returns the address of the server, once the server has said that it is one to take.
Result<Address> check_server(const BrokerAccess& access) {
  TRY_ASSIGN(const Address address, address_of(access.url));
  const Result<std::string> line = first_line(address);
  if (!line.ok()) return Error(access.url, ": ", line.error().message());
  const Result<Json> info =
      line->starts_with("INFO ") ? parse_json(line->substr(5)) : Result<Json>(Error("no"));
  if (!info.ok() || !info->contains("version"))
    return Error(access.url, ": what answers there is no NATS server");
  const std::string version = info->at("version").is_string() ? info->at("version") : "";
  if (version_of(version) < kSafeVersion && !is_this_machine(address.host) && !access.insecure) {
    return Error(access.url,
                 ": the server's version ",
                 version,
                 " has known holes: take 2.11.16 or newer, or say --insecure-server");
  }
  return address;
}

class NatsLease : public Lease {
 public:
  explicit NatsLease(natsMsg* message) : message_(message) {}
  ~NatsLease() override { natsMsg_Destroy(message_); }
  NatsLease(const NatsLease&) = delete;
  NatsLease& operator=(const NatsLease&) = delete;

  std::string_view bytes() const override {
    return {natsMsg_GetData(message_), static_cast<size_t>(natsMsg_GetDataLength(message_))};
  }

  int deliveries() const override {
    jsMsgMetaData* meta = nullptr;
    if (natsMsg_GetMetaData(&meta, message_) != NATS_OK) return 1;
    const int deliveries = static_cast<int>(meta->NumDelivered);
    jsMsgMetaData_Destroy(meta);
    return deliveries;
  }

  Result<Unit> done() const override {
    return check(natsMsg_AckSync(message_, nullptr, nullptr), "acknowledging");
  }
  void keep() const override { natsMsg_InProgress(message_, nullptr); }
  void give_back(double delay_s) const override {
    natsMsg_NakWithDelay(
        message_, static_cast<int64_t>(delay_s * static_cast<double>(kMs)), nullptr);
  }

 private:
  natsMsg* message_;
};

class NatsQueue : public Queue {
 public:
  explicit NatsQueue(natsSubscription* subscription) : subscription_(subscription) {}
  ~NatsQueue() override { natsSubscription_Destroy(subscription_); }
  NatsQueue(const NatsQueue&) = delete;
  NatsQueue& operator=(const NatsQueue&) = delete;

  Result<Leases> take(int most, double timeout_s) override {
    natsMsgList list = {};
    jsErrCode code = static_cast<jsErrCode>(0);
    const auto patience = static_cast<int64_t>(timeout_s * static_cast<double>(kMs));
    const natsStatus status =
        natsSubscription_Fetch(&list, subscription_, most, std::max<int64_t>(patience, 1), &code);
    Leases taken;
    for (int i = 0; i < list.Count; ++i)
      taken.push_back(std::make_unique<NatsLease>(std::exchange(list.Msgs[i], nullptr)));
    natsMsgList_Destroy(&list);
    // A server that is away is waited for as for messages.
    if (!taken.empty() || status == NATS_OK || status == NATS_TIMEOUT) return taken;
    if (code == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(std::clamp<int64_t>(patience, 1, 500)));
      return taken;
    }
    TRY(check(status, "taking from a queue"));
    return taken;
  }

 private:
  natsSubscription* subscription_;
};

// Who wants to know of a stream's messages that nobody has dealt with.
struct Listener {
  jsCtx* context;
  std::string stream;
  std::function<bool(std::string_view)> lost;

  void hear(uint64_t number) const {
    natsMsg* message = nullptr;
    if (js_GetMsg(&message, context, stream.c_str(), number, nullptr, nullptr) != NATS_OK) return;
    const std::string_view bytes(natsMsg_GetData(message),
                                 static_cast<size_t>(natsMsg_GetDataLength(message)));
    if (lost(bytes)) js_DeleteMsg(context, stream.c_str(), number, nullptr, nullptr);
    natsMsg_Destroy(message);
  }
};

class NatsBroker : public Broker {
 public:
  static Result<std::unique_ptr<Broker>> connect(const BrokerAccess& access) {
    TRY_ASSIGN(const Address address, check_server(access));
    NKey key;
    if (!access.seed_file.empty()) {
      TRY_ASSIGN(key, read_nkey(access.seed_file));
    }
    auto made = std::make_unique<NatsBroker>();
    natsOptions* options = nullptr;
    natsOptions_Create(&options);
    natsOptions_SetURL(options, access.url.c_str());
    natsOptions_SetTimeout(options, kConnectMs);
    natsOptions_SetMaxReconnect(options, -1);
    natsOptions_SetName(options, "pruner");
    natsOptions_SetErrorHandler(options, nullptr, nullptr);
    natsStatus status = NATS_OK;
    if (!access.seed_file.empty())
      status =
          natsOptions_SetNKeyFromSeed(options, key.public_key.c_str(), access.seed_file.c_str());
    if (status == NATS_OK && access.url.starts_with("tls://")) {
      status = natsOptions_SetSecure(options, true);
      if (status == NATS_OK)
        status = natsOptions_SetExpectedHostname(options, address.host.c_str());
      if (status == NATS_OK && !access.ca_file.empty())
        status = natsOptions_LoadCATrustedCertificates(options, access.ca_file.c_str());
    }
    // The server refuses about one signature in 300 of the right key (nats.c 3.4.1); each
    // connection signs another number, and a wrong key is refused each time.
    if (status == NATS_OK) status = natsConnection_Connect(&made->connection_, options);
    for (int more = 1; more < kSignatures && status == NATS_CONNECTION_AUTH_FAILED; ++more)
      status = natsConnection_Connect(&made->connection_, options);
    natsOptions_Destroy(options);
    TRY(check(status, access.url));
    jsOptions stream_options;
    jsOptions_Init(&stream_options);
    stream_options.Wait = kWaitMs;
    TRY(check(natsConnection_JetStream(&made->stream_, made->connection_, &stream_options),
              access.url));
    return std::unique_ptr<Broker>(std::move(made));
  }

  ~NatsBroker() override {
    for (natsSubscription* each : watches_) natsSubscription_Destroy(each);
    jsCtx_Destroy(stream_);
    natsConnection_Close(connection_);
    natsConnection_Destroy(connection_);
  }

  Result<Unit> make_streams() override {
    const auto is_work = [](jsStreamConfig& config) {
      config.Retention = js_WorkQueuePolicy;
      config.MaxBytes = kWorkBytes;
      config.Discard = js_DiscardNew;
    };
    TRY(make_stream(fleet::kTrials, "trial.*.*", is_work));
    TRY(make_stream(fleet::kObjects, "object.*.*", is_work));
    TRY(make_stream(fleet::kResults, "result.*", [](jsStreamConfig& config) {
      config.MaxAge = kResultsAgeS * kNs;
    }));
    TRY(make_table(fleet::kTasks, 0));
    TRY(make_table(fleet::kWorkers, kHeartbeatLifeS));
    return make_table(fleet::kControl, kDuplicatesS);
  }

  int64_t most_bytes() const override { return natsConnection_GetMaxPayload(connection_); }

  Result<Unit> publish(const std::string& subject,
                       const std::string& id,
                       std::string_view bytes,
                       const std::function<bool()>& stop) override {
    while (true) {
      jsPubOptions options;
      jsPubOptions_Init(&options);
      options.MsgId = id.c_str();
      jsErrCode code = static_cast<jsErrCode>(0);
      const natsStatus status = js_Publish(nullptr,
                                           stream_,
                                           subject.c_str(),
                                           bytes.data(),
                                           static_cast<int>(bytes.size()),
                                           &options,
                                           &code);
      if (status == NATS_OK) return Unit{};
      // A request that the server refuses is refused again; a server that is gone may come back.
      if (code != 0 || (status != NATS_TIMEOUT && status != NATS_NO_RESPONDERS &&
                        status != NATS_CONNECTION_DISCONNECTED && status != NATS_CONNECTION_CLOSED))
        TRY(check(status, subject));
      if (stop()) return Error(subject, ": the server is gone");
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }

  // One after the other: after a purge of one subject, a server of 2.9 delivers no message that
  // waited then to a queue of several subjects.
  Result<Unit> purge(const std::string& stream, const std::string& subject) override {
    uint64_t next = 1;
    while (true) {
      TRY_ASSIGN(const std::optional<uint64_t> found, next_of(stream, subject, next));
      if (!found) return Unit{};
      const natsStatus gone = js_DeleteMsg(stream_, stream.c_str(), *found, nullptr, nullptr);
      // Somebody may have been done with it meanwhile.
      if (gone != NATS_NOT_FOUND) TRY(check(gone, subject));
      next = *found + 1;
    }
  }

  Result<Backlog> backlog(const std::string& stream, const std::string& consumer) override {
    jsConsumerInfo* info = nullptr;
    const natsStatus status =
        js_GetConsumerInfo(&info, stream_, stream.c_str(), consumer.c_str(), nullptr, nullptr);
    if (status == NATS_NOT_FOUND) return Backlog{};
    TRY(check(status, consumer));
    const Backlog found{static_cast<int64_t>(info->NumPending), info->NumAckPending};
    jsConsumerInfo_Destroy(info);
    return found;
  }

  Result<std::unique_ptr<Queue>> open_queue(const std::string& stream,
                                            const std::string& subject,
                                            const std::string& name,
                                            double lease_s,
                                            int most_deliveries) override {
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Durable = name.c_str();
    config.AckPolicy = js_AckExplicit;
    config.AckWait = static_cast<int64_t>(lease_s * static_cast<double>(kNs));
    config.MaxDeliver = most_deliveries;
    config.FilterSubject = subject.c_str();
    config.MaxAckPending = 100'000;
    jsConsumerInfo* info = nullptr;
    natsStatus status =
        js_GetConsumerInfo(&info, stream_, stream.c_str(), name.c_str(), nullptr, nullptr);
    if (status == NATS_NOT_FOUND)
      status = js_AddConsumer(&info, stream_, stream.c_str(), &config, nullptr, nullptr);
    jsConsumerInfo_Destroy(info);
    TRY(check(status, name));
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = stream.c_str();
    options.Consumer = name.c_str();
    options.ManualAck = true;
    natsSubscription* subscription = nullptr;
    jsErrCode code = static_cast<jsErrCode>(0);
    TRY(check(js_PullSubscribe(
                  &subscription, stream_, subject.c_str(), name.c_str(), nullptr, &options, &code),
              name));
    return std::unique_ptr<Queue>(std::make_unique<NatsQueue>(subscription));
  }

  Result<Unit> watch_lost(const std::string& stream,
                          const std::string& name,
                          std::function<bool(std::string_view)> lost) override {
    const std::string subject = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + stream + "." + name;
    listeners_.push_back(std::make_unique<Listener>(Listener{stream_, stream, std::move(lost)}));
    const auto heard = [](natsConnection*, natsSubscription*, natsMsg* message, void* listener) {
      const Result<Json> said = parse_json(
          {natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message))});
      if (said.ok() && said->contains("stream_seq") && said->at("stream_seq").is_number_unsigned())
        static_cast<const Listener*>(listener)->hear(said->at("stream_seq"));
      natsMsg_Destroy(message);
    };
    natsSubscription* subscription = nullptr;
    TRY(check(natsConnection_Subscribe(
                  &subscription, connection_, subject.c_str(), heard, listeners_.back().get()),
              subject));
    watches_.push_back(subscription);
    return Unit{};
  }

  Result<Unit> put(const std::string& table,
                   const std::string& key,
                   std::string_view bytes) override {
    return with_table(table, [&](kvStore* store) {
      return check(
          kvStore_Put(nullptr, store, key.c_str(), bytes.data(), static_cast<int>(bytes.size())),
          key);
    });
  }

  Result<std::optional<std::string>> get(const std::string& table,
                                         const std::string& key) override {
    std::optional<std::string> found;
    TRY(with_table(table, [&](kvStore* store) -> Result<Unit> {
      kvEntry* entry = nullptr;
      const natsStatus status = kvStore_Get(&entry, store, key.c_str());
      if (status == NATS_NOT_FOUND) return Unit{};
      TRY(check(status, key));
      found.emplace(static_cast<const char*>(kvEntry_Value(entry)),
                    static_cast<size_t>(kvEntry_ValueLen(entry)));
      kvEntry_Destroy(entry);
      return Unit{};
    }));
    return found;
  }

  Result<std::vector<std::string>> keys(const std::string& table) override {
    std::vector<std::string> names;
    TRY(with_table(table, [&](kvStore* store) -> Result<Unit> {
      kvKeysList list = {};
      const natsStatus status = kvStore_Keys(&list, store, nullptr);
      if (status == NATS_NOT_FOUND) return Unit{};
      TRY(check(status, table));
      for (int i = 0; i < list.Count; ++i) names.emplace_back(list.Keys[i]);
      kvKeysList_Destroy(&list);
      return Unit{};
    }));
    return names;
  }

  Result<Unit> remove(const std::string& table, const std::string& key) override {
    return with_table(
        table, [&](kvStore* store) { return check(kvStore_Delete(store, key.c_str()), key); });
  }

 private:
  // The number in the stream of the first message of a subject from this number on.
  Result<std::optional<uint64_t>> next_of(const std::string& stream,
                                          const std::string& subject,
                                          uint64_t from) {
    const Json request = {{"seq", from}, {"next_by_subj", subject}};
    natsMsg* reply = nullptr;
    TRY(check(natsConnection_RequestString(&reply,
                                           connection_,
                                           ("$JS.API.STREAM.MSG.GET." + stream).c_str(),
                                           request.dump().c_str(),
                                           kWaitMs),
              subject));
    const Result<Json> said =
        parse_json({natsMsg_GetData(reply), static_cast<size_t>(natsMsg_GetDataLength(reply))});
    natsMsg_Destroy(reply);
    TRY_ASSIGN(const Json answer, said);
    if (!answer.contains("message")) return std::optional<uint64_t>();
    TRY_ASSIGN(const uint64_t number, json_get<uint64_t>(answer["message"], "seq"));
    return std::optional(number);
  }

  template <typename Set>
  Result<Unit> make_stream(const char* name, const char* subject, Set set) {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Duplicates = kDuplicatesS * kNs;
    set(config);
    jsErrCode code = static_cast<jsErrCode>(0);
    const natsStatus status = js_AddStream(nullptr, stream_, &config, nullptr, &code);
    if (code == JSStreamNameExistErr) return Unit{};
    return check(status, name);
  }

  Result<Unit> make_table(const char* name, int64_t life_s) {
    kvConfig config;
    kvConfig_Init(&config);
    config.Bucket = name;
    config.TTL = life_s * kNs;
    config.StorageType = js_FileStorage;
    kvStore* store = nullptr;
    natsStatus status = js_KeyValue(&store, stream_, name);
    if (status == NATS_NOT_FOUND) status = js_CreateKeyValue(&store, stream_, &config);
    kvStore_Destroy(store);
    return check(status, name);
  }

  template <typename Use>
  Result<Unit> with_table(const std::string& name, Use use) {
    kvStore* store = nullptr;
    const natsStatus status = js_KeyValue(&store, stream_, name.c_str());
    if (status == NATS_NOT_FOUND)
      return Error("the server knows of no fleet: pruner fleet init --server URL makes it ready");
    TRY(check(status, name));
    const Result<Unit> done = use(store);
    kvStore_Destroy(store);
    return done;
  }

  natsConnection* connection_ = nullptr;
  jsCtx* stream_ = nullptr;
  std::vector<natsSubscription*> watches_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace

Result<std::unique_ptr<Broker>> connect_nats(const BrokerAccess& access) {
  return NatsBroker::connect(access);
}

#endif

}  // namespace pruner
