// SPDX-License-Identifier: Apache-2.0
// The table of GPUs: found by name and by compute capability.
#include "lower/target.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(target, names) {
    unsigned n = 0;
    for (; tk_target_name(n); n++) {
        const tk_target *t = tk_target_find(tk_target_name(n));
        cr_assert(t);
        cr_expect_str_eq(t->name, tk_target_name(n));
        cr_expect_eq(t->cc, (unsigned)atoi(t->name + 3));
        cr_expect_eq(strncmp(t->ptx, "+ptx", 4), 0);
        cr_expect_eq(tk_target_for(t->cc / 10, t->cc % 10)->cc, t->cc);
    }
    cr_expect_geq(n, 5);
    cr_expect_null(tk_target_name(n));
    cr_expect_null(tk_target_find("sm_91z"));
    cr_expect_null(tk_target_find("sm_9"));
    cr_expect_null(tk_target_find(""));
    cr_expect_eq(tk_target_find("sm_90a")->shared_max, 232448);
}

Test(target, capabilities) {
    static const struct {
        unsigned major, minor;
        const char *name; // NULL: too old
    } rows[] = {{7, 5, NULL},      {8, 0, "sm_80"},   {8, 6, "sm_86"},   {8, 7, "sm_86"},
                {8, 9, "sm_89"},   {9, 0, "sm_90a"},  {9, 1, "sm_90"},   {10, 0, "sm_100"},
                {10, 3, "sm_100"}, {11, 0, "sm_100"}, {12, 0, "sm_120"}, {13, 0, "sm_120"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tk_target *t = tk_target_for(rows[i].major, rows[i].minor);
        cr_expect_str_eq(t ? t->name : "none", rows[i].name ? rows[i].name : "none", "%u.%u",
                         rows[i].major, rows[i].minor);
    }
}
