// The list of tests, main() and the JUnit report of test.h.

#include <fnmatch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cc/testing/test.h"

namespace relayout::testing {
namespace {

struct Case {
  std::string name;
  void (*body)();
  std::vector<std::string> failures;
  double seconds = 0;
};

// A local static: tests register before main(), in any order of files.
std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

std::mutex failures_mutex;
Case* running = nullptr;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// `filter` is what `bazel test --test_filter=` gives: a glob, or a part of
// the name if it has no wildcard.
bool Selected(const std::string& name, const std::string& filter) {
  if (filter.find_first_of("*?[") == std::string::npos) {
    return name.find(filter) != std::string::npos;
  }
  return fnmatch(filter.c_str(), name.c_str(), 0) == 0;
}

std::string XmlEscape(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += c;
        break;
    }
  }
  return out;
}

void WriteReport(const std::string& path, const std::vector<Case*>& done) {
  const std::string suite = XmlEscape(Env("TEST_TARGET"));
  std::ofstream xml(path);
  xml << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      << "<testsuite name=\"" << suite << "\" tests=\"" << done.size()
      << "\">\n";
  for (const Case* test : done) {
    xml << "<testcase name=\"" << XmlEscape(test->name) << "\" classname=\""
        << suite << "\" time=\"" << test->seconds << "\">\n";
    for (const std::string& failure : test->failures) {
      xml << "<failure message=\"" << XmlEscape(failure) << "\"/>\n";
    }
    xml << "</testcase>\n";
  }
  xml << "</testsuite>\n</testsuites>\n";
}

void Run(Case& test) {
  std::printf("[ RUN  ] %s\n", test.name.c_str());
  const auto start = std::chrono::steady_clock::now();
  running = &test;
  try {
    test.body();
  } catch (const std::exception& error) {
    Fail("(exception)", 0, EscapeBytes(error.what()));
  } catch (...) {
    Fail("(exception)", 0, "not derived from std::exception");
  }
  running = nullptr;
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start;
  test.seconds = time.count();
  std::printf("[ %s ] %s\n", test.failures.empty() ? " OK " : "FAIL",
              test.name.c_str());
  std::fflush(stdout);
}

int Main() {
  const std::string filter = Env("TESTBRIDGE_TEST_ONLY");
  std::vector<Case*> done;
  std::size_t num_failed = 0;
  for (Case& test : Cases()) {
    if (!Selected(test.name, filter)) continue;
    Run(test);
    done.push_back(&test);
    num_failed += test.failures.empty() ? 0 : 1;
  }
  if (const std::string path = Env("XML_OUTPUT_FILE"); !path.empty()) {
    WriteReport(path, done);
  }
  std::printf("%zu passed, %zu failed\n", done.size() - num_failed, num_failed);
  if (done.empty() && filter.empty()) {
    std::printf("there is no test in this program\n");
    return 1;
  }
  return num_failed == 0 ? 0 : 1;
}

}  // namespace

bool Register(const char* name, void (*body)()) noexcept {
  Cases().push_back({.name = name, .body = body, .failures = {}});
  return true;
}

void Fail(const char* file, int line, const std::string& message) {
  const std::string text =
      std::string(file) + ":" + std::to_string(line) + ": " + message;
  const std::lock_guard lock(failures_mutex);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
  if (running != nullptr) running->failures.push_back(text);
}

std::string TempDir() {
  static const std::string directory = [] {
    if (std::string path = Env("TEST_TMPDIR"); !path.empty()) return path;
    std::string path =
        (std::filesystem::temp_directory_path() / "relayout.XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      std::perror("mkdtemp");
      std::abort();
    }
    return path;
  }();
  return directory;
}

std::string EscapeBytes(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace relayout::testing

int main() { return relayout::testing::Main(); }
