// SPDX-License-Identifier: Apache-2.0
// Messages, reports and the exit code.
#include "tool.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tool_raise(tool *t, int code) {
    if (code > t->code) {
        t->code = code;
    }
}

// JSON strings are UTF-8; names of files need not be.
static json_t *text_json(tool *t, const char *s) {
    json_t *j = json_string(s);
    if (j) {
        return j;
    }
    char *copy = tool_strndup(t, s, strlen(s));
    for (char *p = copy; *p; p++) {
        if ((unsigned char)*p >= 0x80) {
            *p = '?';
        }
    }
    return json_string(copy);
}

static json_t *messages(tool *t) {
    if (!t->messages) {
        t->messages = json_array();
    }
    return t->messages;
}

static void add_json(tool *t, int code, const char *text, const char *help) {
    json_t *helps = json_array();
    if (help) {
        json_array_append_new(helps, json_pack("{s:o}", "text", text_json(t, help)));
    }
    const char *id = code == CODE_USAGE         ? "command-line"
                     : code == CODE_ENVIRONMENT ? "environment"
                                                : "refused";
    json_t *o = json_pack("{s:s, s:s, s:o, s:[], s:o}", "severity", "error", "id", id, "text",
                          text_json(t, text), "notes", "helps", helps);
    json_array_append_new(messages(t), o);
}

static void put_error(tool *t, int code, const char *text, const char *help) {
    tool_raise(t, code);
    if (t->json) {
        add_json(t, code, text, help);
        return;
    }
    fflush(stdout);
    fprintf(stderr,
            t->colour ? "\033[1mtkc: \033[31merror:\033[0;1m %s\033[0m\n" : "tkc: error: %s\n",
            text);
    if (help) {
        fprintf(stderr, t->colour ? "\033[36mhelp:\033[0m %s\n" : "help: %s\n", help);
    }
}

static char *vformat(tool *t, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *s = tool_alloc(t, (n < 0 ? 0 : (size_t)n) + 1, 1);
    if (n >= 0) {
        vsnprintf(s, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return s;
}

// Of a message. Words of the command line may be of any length.
static const char *shortened(tool *t, const char *text) {
    enum { MOST = 1000, END = 100 };
    size_t n = strlen(text);
    return n <= MOST ? text : tool_format(t, "%.*s ... %s", MOST - END, text, text + n - END);
}

char *tool_format(tool *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *s = vformat(t, fmt, args);
    va_end(args);
    return s;
}

void tool_error(tool *t, int code, const char *help, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_error(t, code, shortened(t, vformat(t, fmt, args)), help);
    va_end(args);
}

void tool_usage(tool *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = shortened(t, vformat(t, fmt, args));
    va_end(args);
    const char *help = t->command ? tool_format(t, "'tkc help %s' shows the options", t->command)
                                  : "'tkc --help' shows the commands";
    put_error(t, CODE_USAGE, text, help);
}

static int status_code(tkc_status s) {
    switch (s) {
    case TKC_OK:
        return CODE_FINE;
    case TKC_ERROR_SOURCE:
    case TKC_ERROR_LAUNCH:
    case TKC_ERROR_CHECK:
        return CODE_REFUSED;
    case TKC_ERROR_ARGUMENT:
    case TKC_ERROR_MEMORY:
    case TKC_ERROR_IO:
    case TKC_ERROR_DEVICE:
    case TKC_ERROR_INTERNAL:
        return CODE_ENVIRONMENT;
    }
    return CODE_ENVIRONMENT;
}

// Warnings of a program are reported again where its kernels are compiled.
static bool said_before(tool *t, const char *text) {
    for (size_t i = 0; i < t->nsaid; i++) {
        if (strcmp(t->said[i], text) == 0) {
            return true;
        }
    }
    if (t->nsaid < sizeof t->said / sizeof *t->said) {
        t->said[t->nsaid++] = tool_strndup(t, text, strlen(text));
    }
    return false;
}

static void put_report(tool *t, tkc_report *report) {
    const char *plain = tkc_report_text(report, false);
    if (tkc_report_errors(report) == 0 && said_before(t, plain)) {
        return;
    }
    if (!t->json) {
        fflush(stdout);
        fputs(t->colour ? tkc_report_text(report, true) : plain, stderr);
        return;
    }
    json_t *list = json_loads(tkc_report_json(report), 0, NULL);
    json_array_extend(messages(t), list);
    json_decref(list);
}

// Errors that are of the command line, whoever finds them: a device that no machine has, a kernel
// that the program has not, what stands in a text of -D.
static bool is_of_command_line(tkc_report *report) {
    bool found = false;
    size_t i;
    json_t *one, *list = json_loads(tkc_report_json(report), 0, NULL);
    json_array_foreach(list, i, one) {
        const char *id = json_string_value(json_object_get(one, "id"));
        const char *severity = json_string_value(json_object_get(one, "severity"));
        const char *file = json_string_value(json_object_get(one, "file"));
        const bool error = severity && strcmp(severity, "error") == 0;
        const bool name =
            id && (strcmp(id, "unknown-device") == 0 || strcmp(id, "unknown-kernel") == 0);
        found = found || (error && (name || (file && strncmp(file, "<-D ", 4) == 0)));
    }
    json_decref(list);
    return found;
}

bool tool_report(tool *t, tkc_status s, tkc_report *report) {
    const bool refused = s == TKC_ERROR_SOURCE || s == TKC_ERROR_ARGUMENT ||
                         s == TKC_ERROR_LAUNCH || s == TKC_ERROR_DEVICE;
    const int code = report && refused && is_of_command_line(report) ? CODE_USAGE : status_code(s);
    tool_raise(t, code);
    if (report) {
        put_report(t, report);
    }
    if (s != TKC_OK && tkc_report_errors(report) == 0) {
        put_error(t, code, tkc_status_text(s), NULL);
    }
    tkc_report_destroy(report);
    return s == TKC_OK;
}

// Changes of one letter, and swaps of neighbours, from a to b.
static size_t distance(const char *a, const char *b) {
    enum { LIMIT = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= LIMIT || m >= LIMIT) {
        return SIZE_MAX;
    }
    size_t row[3][LIMIT + 1];
    for (size_t i = 0; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            if (i == 0) {
                now[j] = j;
                continue;
            }
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *tool_nearest(tool *t, const char *name, const char *const *names, size_t n) {
    size_t length = strlen(name), best = length / 3 > 1 ? length / 3 : 1;
    const char *found = NULL;
    for (size_t i = 0; i < n; i++) {
        bool begins = length > 3 && strncmp(name, names[i], length) == 0;
        size_t d = begins ? 1 : distance(name, names[i]);
        // A name of one letter is near to every other such.
        if (d <= best && d < strlen(names[i]) && (!found || d < best)) {
            best = d;
            found = names[i];
        }
    }
    return found ? tool_format(t, "; did you mean '%s'?", found) : "";
}

void tool_set_output(tool *t, bool json, int colour) {
    const char *no_color = getenv("NO_COLOR");
    t->json = json;
    t->colour = colour == 1 || (colour == 0 && isatty(STDERR_FILENO) && !(no_color && no_color[0]));
}

static void put_messages(tool *t) {
    char *text = json_dumps(messages(t), JSON_INDENT(2));
    fprintf(stderr, "%s\n", text ? text : "[]");
    free(text);
}

int tool_end(tool *t) {
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (failed) {
        put_error(t, CODE_ENVIRONMENT,
                  tool_format(t, "writing to standard output: %s", strerror(errno ? errno : EIO)),
                  NULL);
    }
    if (t->json) {
        put_messages(t);
    }
    json_decref(t->messages);
    t->messages = NULL;
    int code = t->code;
    tool_release(t);
    return code;
}
