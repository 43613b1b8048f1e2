// SPDX-License-Identifier: Apache-2.0
// Names of functions and parameters in the header of kernels compiled ahead: C and C++ must take
// them.
#include "runtime/ahead.h"

#include <string.h>

// Keywords of C up to C23 and of C++ up to C++20, and what compilers and the headers that ours
// includes define as macros.
static const char *const taken[] = {
    "alignas",     "alignof",
    "and",         "and_eq",
    "asm",         "auto",
    "bitand",      "bitor",
    "bool",        "break",
    "case",        "catch",
    "char",        "char8_t",
    "char16_t",    "char32_t",
    "class",       "co_await",
    "co_return",   "co_yield",
    "compl",       "concept",
    "const",       "const_cast",
    "consteval",   "constexpr",
    "constinit",   "continue",
    "decltype",    "default",
    "delete",      "do",
    "double",      "dynamic_cast",
    "else",        "enum",
    "explicit",    "export",
    "extern",      "false",
    "float",       "for",
    "friend",      "goto",
    "if",          "inline",
    "int",         "linux",
    "long",        "main",
    "mutable",     "namespace",
    "new",         "noexcept",
    "not",         "not_eq",
    "nullptr",     "offsetof",
    "operator",    "or",
    "or_eq",       "private",
    "protected",   "public",
    "register",    "reinterpret_cast",
    "requires",    "restrict",
    "return",      "short",
    "signed",      "sizeof",
    "static",      "static_assert",
    "static_cast", "struct",
    "switch",      "template",
    "this",        "thread_local",
    "throw",       "true",
    "try",         "typedef",
    "typeid",      "typename",
    "typeof",      "typeof_unqual",
    "union",       "unix",
    "unsigned",    "using",
    "virtual",     "void",
    "volatile",    "wchar_t",
    "while",       "xor",
    "xor_eq",      "NULL",
    "INT8_MAX",    "SIZE_MAX",
};

// Of the C library: what programs mostly include, and compilers know of without that. Mathematical
// functions are there for float and long double too, with an f or l.
static const char math[] =
    " acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan "
    "catanh cbrt ccos ccosh ceil cexp cimag clog conj copysign cos cosh cpow cproj creal "
    "csin csinh csqrt ctan ctanh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax "
    "fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb "
    "lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round "
    "roundeven scalbln scalbn sin sinh sqrt tan tanh tgamma trunc ";
static const char library[] =
    " abort abs aligned_alloc asctime assert at_quick_exit atexit atof atoi atol atoll "
    "bcmp bcopy bsearch btowc bzero calloc clearerr clock close ctime difftime div errno "
    "exit fclose feof ferror fflush ffs fgetc fgetpos fgets fgetwc fgetws fopen fork "
    "fprintf fputc fputs fputwc fputws fread free freopen fscanf fseek fsetpos ftell fwide "
    "fwprintf fwrite fwscanf gamma getc getchar getenv gets getwc getwchar gmtime imaxabs "
    "imaxdiv index isalnum isalpha isblank iscntrl isdigit isfinite isgraph isgreater "
    "isinf isless islower isnan isnormal isprint ispunct isspace isupper isxdigit j0 j1 jn "
    "kill labs ldiv link llabs lldiv localeconv localtime longjmp malloc mblen mbrlen "
    "mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp memcpy memmove memset "
    "mktime open pause perror pipe printf putc putchar puts putwc putwchar qsort "
    "quick_exit raise rand random read realloc remove rename rewind rindex scanf select "
    "setbuf setjmp setlocale setvbuf signal signbit significand sleep snprintf sprintf "
    "srand sscanf stderr stdin stdout stpcpy strcasecmp strcat strchr strcmp strcoll "
    "strcpy strcspn strdup strerror strftime strlen strncasecmp strncat strncmp strncpy "
    "strndup strpbrk strrchr strspn strstr strtod strtof strtoimax strtok strtol strtold "
    "strtoll strtoul strtoull strtoumax strxfrm swprintf swscanf system time timespec_get "
    "tmpfile tmpnam tolower toupper towlower towupper truncate ungetc ungetwc unlink "
    "vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf vsscanf "
    "vswprintf vswscanf vwprintf vwscanf wait wcrtomb wcscat wcschr wcscmp wcscpy wcslen "
    "wcsncat wcsncmp wcsncpy wcstod wcstol wctomb wmemchr wmemcmp wmemcpy wmemmove wmemset "
    "wprintf write wscanf y0 y1 yn ";

static bool is_word(const char *words, const char *name, size_t n) {
    for (const char *at = words + 1; *at; at += strcspn(at, " ") + 1) {
        if (strncmp(at, name, n) == 0 && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

static bool is_of_library(const char *name) {
    size_t n = strlen(name);
    bool narrow = n > 1 && (name[n - 1] == 'f' || name[n - 1] == 'l');
    return is_word(library, name, n) || is_word(math, name, n) ||
           (narrow && is_word(math, name, n - 1));
}

static bool is_taken(const char *name) {
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    // What begins so belongs to the compiler, or to tkc; what ends so is a type.
    size_t n = strlen(name);
    return (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) ||
           strncmp(name, "tkc_", 4) == 0 || strncmp(name, "TKC_", 4) == 0 ||
           (n > 2 && strcmp(name + n - 2, "_t") == 0);
}

static bool is_identifier(const char *s) {
    static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return s[0] && (s[0] < '0' || s[0] > '9') && s[strspn(s, all)] == 0;
}

static void fail(tk_work *w, tk_span at, const char *id, const char *help, const char *text) {
    tk_span none = {0, 0, 0};
    tk_diag *d = tk_error(&w->diags, at, id, "%s", text);
    tk_help(&w->diags, d, none, "%s", help);
}

#define OTHER_NAME "give its function another name (tkc: --instance NAME=KERNEL)"

// What a kernel's name adds to the names of the program.
static const char *const derived[] = {"", "_load", "_unload", "_bundle", "_state"};
enum { NDERIVED = sizeof derived / sizeof *derived };

static bool clash(tk_work *w, const char *a, const char *b) {
    for (size_t i = 0; i < NDERIVED; i++) {
        for (size_t k = 0; k < NDERIVED; k++) {
            const char *x = tk_format(&w->arena, "%s%s", a, derived[i]);
            if (strcmp(x, tk_format(&w->arena, "%s%s", b, derived[k])) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool check_function(tk_work *w, const ahead_add *a) {
    tk_span at = a->kernel->info->item->span;
    if (!is_identifier(a->name)) {
        fail(w, at, "no-c-name", OTHER_NAME,
             tk_format(&w->arena, "'%s' is no identifier of C", a->name));
        return false;
    }
    if (is_taken(a->name)) {
        fail(w, at, "c-keyword", OTHER_NAME,
             tk_format(&w->arena, "'%s' cannot be the name of a function: it is taken in C or C++",
                       a->name));
        return false;
    }
    if (is_of_library(a->name)) {
        fail(w, at, "c-library", OTHER_NAME,
             tk_format(&w->arena,
                       "'%s' cannot be the name of a function: the C library has one of that name",
                       a->name));
        return false;
    }
    for (const ahead_kernel *k = a->ahead->first; k; k = k->next) {
        if (clash(w, a->name, k->name.at)) {
            fail(w, at, "name-clash", OTHER_NAME,
                 tk_format(&w->arena,
                           strcmp(a->name, k->name.at) == 0
                               ? "there is a function '%s' already"
                               : "'%s' clashes with '%s': NAME_load, NAME_unload, NAME_bundle and "
                                 "NAME_state belong to a function NAME",
                           a->name, k->name.at));
            return false;
        }
    }
    return true;
}

bool ahead_check_names(tk_work *w, const ahead_add *a) {
    if (!check_function(w, a)) {
        return false;
    }
    const tk_kernel_info *info = a->kernel->info;
    bool ok = true;
    for (uint32_t i = 0; i < info->nparam; i++) {
        const tk_kparam *p = &info->param[i];
        if (is_taken(p->name)) {
            fail(w, p->span, "c-keyword", "give the parameter another name",
                 tk_format(&w->arena,
                           "'%s' cannot be the name of a parameter of a function of C: it is taken "
                           "in C or C++",
                           p->name));
            ok = false;
        }
    }
    return ok;
}
