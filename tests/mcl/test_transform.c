/* Transforms: what mcl 22-282 made of two small graphs, operation by operation; a dense and obvious reference on
 * random graphs; parsing; threads; every allocation failing in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcl.h"
#include "support.h"

/* ---- recorded results ---------------------------------------------------------------------------------- */

/* A graph as text: the columns of a native matrix, "COLUMN ROW:WEIGHT ROW:WEIGHT $ COLUMN ...". The expected texts
 * are what mcl wrote with nine digits, which tell any two f32 apart. */
typedef struct recorded {
    const char *spec, *expected;
} recorded;

static const char directed[] =
    "0 0:2 1:0.5 2:1 3:3.5 $ 1 0:0.25 2:7 5:1 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.300000012 "
    "3:4 4:2 5:2 $ 4 0:1.70000005 2:2";

static const recorded directed_cases[] = {
    {"lt(2)",
     "0 1:0.5 2:1 $ 1 0:0.25 5:1 $ 2 0:1 3:0.100000001 $ 3 2:0.300000012 $ 4 0:1.70000005"},
    {"lq(2)",
     "0 0:2 1:0.5 2:1 $ 1 0:0.25 5:1 $ 2 0:1 3:0.100000001 4:2 $ 3 2:0.300000012 4:2 5:2 $ 4 "
     "0:1.70000005 2:2"},
    {"gq(2)",
     "0 0:2 3:3.5 $ 1 2:7 $ 2 1:7 4:2 $ 3 3:4 4:2 5:2 $ 4 2:2"},
    {"gt(2)",
     "0 3:3.5 $ 1 2:7 $ 2 1:7 $ 3 3:4"},
    {"ceil(2)",
     "0 0:2 1:0.5 2:1 3:2 $ 1 0:0.25 2:2 5:1 $ 2 0:1 1:2 3:0.100000001 4:2 $ 3 2:0.300000012 3:2 "
     "4:2 5:2 $ 4 0:1.70000005 2:2"},
    {"floor(2)",
     "0 0:2 1:2 2:2 3:3.5 $ 1 0:2 2:7 5:2 $ 2 0:2 1:7 3:2 4:2 $ 3 2:2 3:4 4:2 5:2 $ 4 0:2 2:2"},
    {"mul(0.1),mul(3)",
     "0 0:0.600000024 1:0.150000006 2:0.300000012 3:1.04999995 $ 1 0:0.075000003 2:2.0999999 "
     "5:0.300000012 $ 2 0:0.300000012 1:2.0999999 3:0.0300000012 4:0.600000024 $ 3 2:0.0900000036 "
     "3:1.20000005 4:0.600000024 5:0.600000024 $ 4 0:0.50999999 2:0.600000024"},
    {"add(0.1),mul(0.7),add(-0.3)",
     "0 0:1.16999984 1:0.120000005 2:0.469999969 3:2.22000003 $ 1 0:-0.0550000221 2:4.6699996 "
     "5:0.469999969 $ 2 0:0.469999969 1:4.6699996 3:-0.160000011 4:1.16999984 $ 3 2:-0.0200000107 "
     "3:2.56999993 4:1.16999984 5:1.16999984 $ 4 0:0.959999979 2:1.16999984"},
    {"pow(0.7)",
     "0 0:1.6245048 1:0.615572214 2:1 3:2.40351939 $ 1 0:0.378929138 2:3.90452862 5:1 $ 2 0:1 "
     "1:3.90452862 3:0.199526235 4:1.6245048 $ 3 2:0.430511624 3:2.63901567 4:1.6245048 "
     "5:1.6245048 $ 4 0:1.44982052 2:1.6245048"},
    {"pow(-1.3)",
     "0 0:0.406126201 1:2.46228886 2:1 3:0.196205676 $ 1 0:6.06286573 2:0.079684265 5:1 $ 2 0:1 "
     "1:0.079684265 3:19.9526215 4:0.406126201 $ 3 2:4.78346205 3:0.164938495 4:0.406126201 "
     "5:0.406126201 $ 4 0:0.501667976 2:0.406126201"},
    {"exp()",
     "0 0:7.38905621 1:1.64872122 2:2.71828175 3:33.1154518 $ 1 0:1.28402543 2:1096.63318 "
     "5:2.71828175 $ 2 0:2.71828175 1:1096.63318 3:1.10517097 4:7.38905621 $ 3 2:1.34985888 "
     "3:54.5981483 4:7.38905621 5:7.38905621 $ 4 0:5.47394753 2:7.38905621"},
    {"exp(1.3)",
     "0 0:1.68999982 1:1.14017546 2:1.29999995 3:2.50496507 $ 1 0:1.06778991 2:6.27484989 "
     "5:1.29999995 $ 2 0:1.29999995 1:6.27484989 3:1.02658367 4:1.68999982 $ 3 2:1.08188975 "
     "3:2.85609961 4:1.68999982 5:1.68999982 $ 4 0:1.56208146 2:1.68999982"},
    {"log()",
     "0 0:0.693147182 1:-0.693147182 3:1.25276291 $ 1 0:-1.38629436 2:1.9459101 $ 2 1:1.9459101 "
     "3:-2.30258512 4:0.693147182 $ 3 2:-1.20397282 3:1.38629436 4:0.693147182 5:0.693147182 $ 4 "
     "0:0.530628264 2:0.693147182"},
    {"log(3)",
     "0 0:0.630929768 1:-0.630929768 3:1.14031398 $ 1 0:-1.26185954 2:1.77124369 $ 2 1:1.77124369 "
     "3:-2.09590316 4:0.630929768 $ 3 2:-1.09590328 3:1.26185954 4:0.630929768 5:0.630929768 $ 4 "
     "0:0.482998669 2:0.630929768"},
    {"neglog()",
     "0 0:-0.693147182 1:0.693147182 3:-1.25276291 $ 1 0:1.38629436 2:-1.9459101 $ 2 1:-1.9459101 "
     "3:2.30258512 4:-0.693147182 $ 3 2:1.20397282 3:-1.38629436 4:-0.693147182 5:-0.693147182 $ "
     "4 0:-0.530628264 2:-0.693147182"},
    {"neglog(10)",
     "0 0:-0.30103001 1:0.30103001 3:-0.544068038 $ 1 0:0.60206002 2:-0.845098019 $ 2 "
     "1:-0.845098019 3:1 4:-0.30103001 $ 3 2:0.522878706 3:-0.60206002 4:-0.30103001 "
     "5:-0.30103001 $ 4 0:-0.230448931 2:-0.30103001"},
    {"scale(3.3)",
     "0 0:0.606060624 1:0.151515156 2:0.303030312 3:1.06060612 $ 1 0:0.075757578 2:2.12121224 "
     "5:0.303030312 $ 2 0:0.303030312 1:2.12121224 3:0.0303030312 4:0.606060624 $ 3 "
     "2:0.0909090936 3:1.21212125 4:0.606060624 5:0.606060624 $ 4 0:0.51515156 2:0.606060624"},
    {"scale(0)",
     ""},
    {"abs()",
     "0 0:2 1:0.5 2:1 3:3.5 $ 1 0:0.25 2:7 5:1 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.300000012 "
     "3:4 4:2 5:2 $ 4 0:1.70000005 2:2"},
    {"add(-2),abs()",
     "0 1:1.5 2:1 3:1.5 $ 1 0:1.75 2:5 5:1 $ 2 0:1 1:5 3:1.89999998 $ 3 2:1.70000005 3:2 $ 4 "
     "0:0.299999952"},
    {"acos()",
     "0 1:1.04719758 $ 1 0:1.31811607 $ 2 3:1.47062886 $ 3 2:1.26610363"},
    {"add(-2),acos()",
     "0 0:1.57079637 1:3.14159274 2:3.14159274 $ 1 0:3.14159274 5:3.14159274 $ 2 0:3.14159274 "
     "3:3.14159274 4:1.57079637 $ 3 2:3.14159274 4:1.57079637 5:1.57079637 $ 4 0:1.87548888 "
     "2:1.57079637"},
    {"#ceilnb(0)",
     ""},
    {"mul(0.2),acos()",
     "0 0:1.15927947 1:1.47062886 2:1.36943841 3:0.795398831 $ 1 0:1.52077544 5:1.36943841 $ 2 "
     "0:1.36943841 3:1.55079496 4:1.15927947 $ 3 2:1.51076031 3:0.643501103 4:1.15927947 "
     "5:1.15927947 $ 4 0:1.22387946 2:1.15927947"},
    {"log(),add(1)",
     "0 0:1.69314718 1:0.306852818 2:1 3:2.25276279 $ 1 0:-0.386294365 2:2.94590998 5:1 $ 2 0:1 "
     "1:2.94590998 3:-1.30258512 4:1.69314718 $ 3 2:-0.203972816 3:2.38629436 4:1.69314718 "
     "5:1.69314718 $ 4 0:1.5306282 2:1.69314718"},
    {"mul(0),add(1)",
     "0 0:1 1:1 2:1 3:1 $ 1 0:1 2:1 5:1 $ 2 0:1 1:1 3:1 4:1 $ 3 2:1 3:1 4:1 5:1 $ 4 0:1 2:1"},
    {"mul(0),lt(5),add(1)",
     ""},
    {"gq(2),add(1)",
     "0 0:3 3:4.5 $ 1 2:8 $ 2 1:8 4:3 $ 3 3:5 4:3 5:3 $ 4 2:3"},
    {"add(-2),log()",
     "0 0:-3.40282347e+38 3:0.405465096 $ 1 2:1.60943794 $ 2 1:1.60943794 4:-3.40282347e+38 $ 3 "
     "3:0.693147182 4:-3.40282347e+38 5:-3.40282347e+38 $ 4 2:-3.40282347e+38"},
    {"add(-2),neglog(3),add(1)",
     "0 0:3.40282347e+38 1:1 2:1 3:0.630929768 $ 1 0:1 2:-0.464973569 5:1 $ 2 0:1 1:-0.464973569 "
     "3:1 4:3.40282347e+38 $ 3 2:1 3:0.369070232 4:3.40282347e+38 5:3.40282347e+38 $ 4 0:1 "
     "2:3.40282347e+38"},
    {"gq(0.5),lt(4),mul(2)",
     "0 0:4 1:1 2:2 3:7 $ 1 5:2 $ 2 0:2 4:4 $ 3 4:4 5:4 $ 4 0:3.4000001 2:4"},
    {"#knn(1)",
     "1 2:7 $ 2 1:7 $ 3 3:4"},
    {"#knn(2)",
     "0 0:2 $ 1 2:7 $ 2 1:7 4:2 $ 3 3:4 $ 4 2:2"},
    {"#knn(2.5)",
     "0 0:2 2:1 $ 1 2:7 $ 2 0:1 1:7 4:2 $ 3 3:4 $ 4 2:2"},
    {"#knn(0)",
     "0 0:2 1:0.5 2:1 3:3.5 $ 1 0:0.25 2:7 5:1 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.300000012 "
     "3:4 4:2 5:2 $ 4 0:1.70000005 2:2"},
    {"#knnj(1)",
     "0 3:3.5 $ 1 2:7 $ 2 1:7 4:2 $ 3 0:3.5 3:4 $ 4 2:2"},
    {"#knnj(2)",
     "0 0:2 3:3.5 4:1.70000005 $ 1 2:7 5:1 $ 2 1:7 4:2 $ 3 0:3.5 3:4 $ 4 0:1.70000005 2:2 $ 5 1:1"},
    {"#ceilnb(2)",
     "0 0:2 3:3.5 $ 1 2:7 5:1 $ 2 1:7 4:2 $ 3 3:4 $ 4 0:1.70000005 2:2"},
    {"#ceilnb(3)",
     "0 0:2 2:1 3:3.5 $ 1 2:7 5:1 $ 2 0:1 1:7 4:2 $ 3 3:4 4:2 5:2 $ 4 0:1.70000005 2:2"},
    {"#mcl(3)",
     "0 0:2 3:3.5 $ 1 2:7 $ 2 1:7 4:2 $ 3 3:4 5:2 $ 4 2:2"},
    {"#symmcl(3)",
     "0 0:2 1:0.5 2:1 $ 1 0:0.25 2:7 $ 2 0:1 1:7 4:2 $ 3 3:4 5:2 $ 4 0:1.70000005 2:2"},
    {"#add()",
     "0 0:4 1:0.75 2:2 3:3.5 4:1.70000005 $ 1 0:0.75 2:14 5:1 $ 2 0:2 1:14 3:0.400000006 4:4 $ 3 "
     "0:3.5 2:0.400000006 3:8 4:2 5:2 $ 4 0:1.70000005 2:4 3:2 $ 5 1:1 3:2"},
    {"#min()",
     "0 0:2 1:0.25 2:1 $ 1 0:0.25 2:7 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.100000001 3:4 $ 4 2:2"},
    {"#max()",
     "0 0:2 1:0.5 2:1 3:3.5 4:1.70000005 $ 1 0:0.5 2:7 5:1 $ 2 0:1 1:7 3:0.300000012 4:2 $ 3 "
     "0:3.5 2:0.300000012 3:4 4:2 5:2 $ 4 0:1.70000005 2:2 3:2 $ 5 1:1 3:2"},
    {"#mul()",
     "0 0:4 1:0.125 2:1 $ 1 0:0.125 2:49 $ 2 0:1 1:49 3:0.0300000012 4:4 $ 3 2:0.0300000012 3:16 "
     "$ 4 2:4"},
    {"#arcmax()",
     "0 0:2 1:0.5 2:1 3:3.5 $ 1 2:7 5:1 $ 2 0:1 1:7 4:2 $ 3 2:0.300000012 3:4 4:2 5:2 $ 4 "
     "0:1.70000005 2:2"},
    {"#arcsub()",
     "0 1:0.25 3:3.5 4:-1.70000005 $ 1 0:-0.25 5:1 $ 2 3:-0.200000018 $ 3 0:-3.5 2:0.200000018 "
     "4:2 5:2 $ 4 0:1.70000005 3:-2 $ 5 1:-1 3:-2"},
    {"#rev()",
     "0 0:2 1:0.25 2:1 4:1.70000005 $ 1 0:0.5 2:7 $ 2 0:1 1:7 3:0.300000012 4:2 $ 3 0:3.5 "
     "2:0.100000001 3:4 $ 4 2:2 3:2 $ 5 1:1 3:2"},
    {"#tp()",
     "0 0:2 1:0.25 2:1 4:1.70000005 $ 1 0:0.5 2:7 $ 2 0:1 1:7 3:0.300000012 4:2 $ 3 0:3.5 "
     "2:0.100000001 3:4 $ 4 2:2 3:2 $ 5 1:1 3:2"},
    {"#selfrm()",
     "0 1:0.5 2:1 3:3.5 $ 1 0:0.25 2:7 5:1 $ 2 0:1 1:7 3:0.100000001 4:2 $ 3 2:0.300000012 4:2 "
     "5:2 $ 4 0:1.70000005 2:2"},
    {"#selfmax()",
     "0 0:3.5 1:0.5 2:1 3:3.5 $ 1 0:0.25 1:7 2:7 5:1 $ 2 0:1 1:7 2:7 3:0.100000001 4:2 $ 3 "
     "2:0.300000012 3:2 4:2 5:2 $ 4 0:1.70000005 2:2 4:2 $ 5 5:1"},
    {"#step()",
     "0 0:259.768127 1:615.234985 2:514.485229 3:539.86554 4:376.89502 5:254.397507 $ 1 "
     "0:490.089996 1:2684.59814 2:106.903755 3:347.944122 4:824.844971 5:70.6500015 $ 2 "
     "0:442.218262 1:119.9375 2:2986.81836 3:426.116516 4:116.496002 5:473.840973 $ 3 "
     "0:177.643509 1:296.735535 2:403.691986 3:411.508423 4:235.998016 5:193.430008 $ 4 "
     "0:195.559998 1:845.871277 2:169.713501 3:267.14325 4:325.730011 5:101.940002"},
    {"#step(1)",
     "0 0:5.125 1:8 2:6.55000019 3:21.1000004 4:9 5:7.5 $ 1 0:7.5 1:49.125 2:0.25 3:1.57500005 "
     "4:14 $ 2 0:7.1500001 1:0.5 2:54.0299988 3:3.9000001 4:0.200000003 5:7.19999981 $ 3 "
     "0:3.70000005 1:2.10000014 2:5.19999981 3:16.0300007 4:8.60000038 5:8 $ 4 0:5.4000001 "
     "1:14.8500004 2:1.70000005 3:6.1500001 4:4"},
    {"#arcsub(),#arcmax()",
     "0 1:0.25 3:3.5 $ 1 5:1 $ 3 2:0.200000018 4:2 5:2 $ 4 0:1.70000005"},
    {"gq(0.5),#knn(3),mul(2),#selfmax(),#max()",
     "0 0:2 2:2 $ 1 1:14 2:14 $ 2 0:2 1:14 2:14 4:4 $ 3 3:1 $ 4 2:4 4:4 $ 5 5:1"},
};

static const char undirected[] =
    "0 1:2 2:3 3:0.5 $ 1 0:2 2:5 3:2 $ 2 0:3 1:5 3:1 6:0.200000003 $ 3 0:0.5 1:2 2:1 "
    "4:0.0500000007 $ 4 3:0.0500000007 5:6 6:6 $ 5 4:6 5:4 6:0.300000012 $ 6 2:0.200000003 4:6 "
    "5:0.300000012";

static const recorded undirected_cases[] = {
    {"#knn(2)",
     "0 2:3 $ 1 2:5 $ 2 0:3 1:5 $ 4 5:6 6:6 $ 5 4:6 5:4 $ 6 4:6"},
    {"#knnj(1)",
     "0 2:3 $ 1 2:5 3:2 $ 2 0:3 1:5 $ 3 1:2 $ 4 5:6 6:6 $ 5 4:6 $ 6 4:6"},
    {"#knnj(2)",
     "0 1:2 2:3 $ 1 0:2 2:5 3:2 $ 2 0:3 1:5 3:1 $ 3 1:2 2:1 $ 4 5:6 6:6 $ 5 4:6 5:4 6:0.300000012 "
     "$ 6 4:6 5:0.300000012"},
    {"#ceilnb(1)",
     "1 2:5 $ 2 1:5 $ 5 5:4"},
    {"#ceilnb(2)",
     "0 2:3 $ 1 2:5 $ 2 0:3 1:5 $ 4 5:6 6:6 $ 5 4:6 5:4 $ 6 4:6"},
    {"#ils()",
     "0 1:2 2:3 3:1.13092971 $ 1 0:2 2:5 3:2 $ 2 0:3 1:5 3:1.26185954 6:0.200000003 $ 3 "
     "0:1.13092971 1:2 2:1.26185954 4:0.0500000007 $ 4 3:0.0500000007 5:6 6:6 $ 5 4:6 "
     "6:0.630929768 $ 6 2:0.200000003 4:6 5:0.630929768"},
    {"add(-2.5),#ils()",
     "0 1:1 2:1.13092971 3:1.13092971 $ 1 0:1 2:2.5 3:1.13092971 $ 2 0:1.13092971 1:2.5 3:1.26185954 "
     "$ 3 0:1.13092971 1:1.13092971 2:1.26185954 $ 4 5:3.5 6:3.5 $ 5 4:3.5 6:0.630929768 $ 6 4:3.5 "
     "5:0.630929768"},
    {"#mcl(4)",
     "0 1:2 2:3 3:0.5 $ 1 0:2 2:5 3:2 $ 2 0:3 1:5 3:1 $ 3 0:0.5 1:2 2:1 $ 4 5:6 6:6 $ 5 4:6 5:4 "
     "6:0.300000012 $ 6 4:6 5:0.300000012"},
    {"#symmcl(4)",
     "0 1:2 2:3 3:0.5 $ 1 0:2 2:5 3:2 $ 2 0:3 1:5 3:1 $ 3 0:0.5 1:2 2:1 $ 4 5:6 6:6 $ 5 4:6 5:4 "
     "6:0.300000012 $ 6 4:6 5:0.300000012"},
    {"#selfmax()",
     "0 0:3 1:2 2:3 3:0.5 $ 1 0:2 1:5 2:5 3:2 $ 2 0:3 1:5 2:5 3:1 6:0.200000003 $ 3 0:0.5 1:2 2:1 "
     "3:2 4:0.0500000007 $ 4 3:0.0500000007 4:6 5:6 6:6 $ 5 4:6 5:6 6:0.300000012 $ 6 "
     "2:0.200000003 4:6 5:0.300000012 6:6 $ 7 7:1"},
    {"#step(1),#selfrm(),log()",
     "0 1:2.77258873 2:2.35137534 3:1.9459101 4:-3.68887949 6:-0.510825574 $ 1 0:2.77258873 "
     "2:2.07944155 3:1.79175949 4:-2.30258512 $ 2 0:2.35137534 1:2.07944155 3:2.44234705 "
     "4:0.223143548 5:-2.81341076 $ 3 0:1.9459101 1:1.79175949 2:2.44234705 5:-1.20397282 "
     "6:-0.693147182 $ 4 0:-3.68887949 1:-2.30258512 2:0.223143548 5:3.25037456 6:0.587786734 $ 5 "
     "2:-2.81341076 3:-1.20397282 4:3.25037456 6:3.61630869 $ 6 0:-0.510825574 3:-0.693147182 "
     "4:0.587786734 5:3.61630869"},
    {"mul(0.3),#ils(),gq(0.9)",
     "0 1:1 2:1.13092971 3:1.13092971 $ 1 0:1 2:1.5 3:1.13092971 $ 2 0:1.13092971 1:1.5 "
     "3:1.26185954 $ 3 0:1.13092971 1:1.13092971 2:1.26185954 $ 4 5:1.80000007 6:1.80000007 $ 5 "
     "4:1.80000007 $ 6 4:1.80000007"},
    {"#arcsub()",
     ""},
};

/* Stars with two equal weights, and one that is one or two f32 steps (2^-23 of 1) heavier. */
static const char nearly_tied[] =
    "0 1:1.5 2:1.5 3:1.50000012 $ 1 0:1.5 $ 2 0:1.5 $ 3 0:1.50000012 $ 4 5:1.5 6:1.5 7:1.50000024 $ 5 4:1.5 $ 6 4:1.5 "
    "$ 7 4:1.50000024 $ 8 9:1 10:1 11:1.00000012 $ 9 8:1 $ 10 8:1 $ 11 8:1.00000012 $ 12 13:9.9999461e-41 "
    "14:9.9999461e-41 15:1.00000862e-40 $ 13 12:9.9999461e-41 $ 14 12:9.9999461e-41 $ 15 12:1.00000862e-40 $ 16 "
    "17:16777218 18:16777220 19:16777220 20:16777222 $ 17 16:16777218 $ 18 16:16777220 $ 19 16:16777220 $ 20 "
    "16:16777222";

static const recorded nearly_tied_cases[] = {
    {"#knn(2)",
     "4 7:1.50000024 $ 7 4:1.50000024 $ 8 11:1.00000012 $ 11 8:1.00000012 $ 12 15:1.00000862e-40 $ 15 "
     "12:1.00000862e-40"},
    {"#knn(3)",
     "0 1:1.5 2:1.5 3:1.50000012 $ 1 0:1.5 $ 2 0:1.5 $ 3 0:1.50000012 $ 4 5:1.5 6:1.5 7:1.50000024 $ 5 4:1.5 $ 6 4:1.5 "
     "$ 7 4:1.50000024 $ 8 9:1 10:1 11:1.00000012 $ 9 8:1 $ 10 8:1 $ 11 8:1.00000012 $ 12 13:9.9999461e-41 "
     "14:9.9999461e-41 15:1.00000862e-40 $ 13 12:9.9999461e-41 $ 14 12:9.9999461e-41 $ 15 12:1.00000862e-40 $ 16 "
     "18:16777220 19:16777220 20:16777222 $ 18 16:16777220 $ 19 16:16777220 $ 20 16:16777222"},
    {"#ceilnb(2)",
     "4 7:1.50000024 $ 7 4:1.50000024 $ 8 11:1.00000012 $ 11 8:1.00000012 $ 12 15:1.00000862e-40 $ 15 "
     "12:1.00000862e-40"},
    {"#ceilnb(1)",
     "0 3:1.50000012 $ 3 0:1.50000012 $ 4 7:1.50000024 $ 7 4:1.50000024 $ 8 11:1.00000012 $ 11 8:1.00000012 $ 12 "
     "15:1.00000862e-40 $ 15 12:1.00000862e-40 $ 16 20:16777222 $ 20 16:16777222"},
};

/* ---- helpers ------------------------------------------------------------------------------------------- */

enum { TEXT_SIZE = 8192 };

static sp_csr graph_of_text(sp_context *context, int64_t nodes, const char *text)
{
    int32_t columns[64], rows[64];
    float weights[64];
    int64_t count = 0;
    int column = -1;
    for (const char *at = text; *at;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (*end == ':') {
            columns[count] = column;
            rows[count] = (int32_t)number;
            weights[count++] = strtof(end + 1, &end);
        } else {
            column = (int)number;
        }
        at = end + strspn(end, " $");
    }
    sp_csr graph;
    ck_ok(context, sp_csr_from_coo(context, nodes, nodes, count, columns, rows, weights, SP_F32, SP_COMBINE_FIRST,
                                   false, &graph));
    return graph;
}

static void text_of_graph(const sp_csr *graph, char *text)
{
    const float *values = graph->values;
    int used = 0;
    text[0] = '\0';
    for (int64_t j = 0; j < graph->rows; j++) {
        if (graph->row_offsets[j] == graph->row_offsets[j + 1]) continue;
        used += snprintf(text + used, (size_t)(TEXT_SIZE - used), used ? " $ %d" : "%d", (int)j);
        for (int64_t e = graph->row_offsets[j]; e < graph->row_offsets[j + 1]; e++)
            used += snprintf(text + used, (size_t)(TEXT_SIZE - used), " %d:%.9g", graph->col_indices[e],
                             (double)values[e]);
    }
}

static mcl_transform *parse(sp_context *context, const char *spec)
{
    mcl_transform *transform;
    ck_ok(context, mcl_transform_parse(context, spec, false, &transform));
    return transform;
}

static sp_status apply(sp_context *context, const char *spec, sp_csr *graph)
{
    mcl_transform *transform = parse(context, spec);
    sp_status status = mcl_transform_graph(context, transform, NULL, graph);
    mcl_transform_free(context, transform);
    return status;
}

static void check_recorded(const recorded *r, int64_t nodes, const char *graph_text)
{
    char text[TEXT_SIZE];
    sp_context *context = test_context(0, 2);
    sp_csr graph = graph_of_text(context, nodes, graph_text);
    ck_ok(context, apply(context, r->spec, &graph));
    ck_ok(context, sp_csr_check(context, &graph));
    text_of_graph(&graph, text);
    ck_assert_msg(strcmp(text, r->expected) == 0, "%s\n  made     %s\n  expected %s", r->spec, text, r->expected);
    sp_csr_free(context, &graph);
    sp_context_destroy(context);
}

TEST(directed_graph_becomes_what_mcl_makes_of_it) { check_recorded(&directed_cases[_i], 6, directed); }

TEST(undirected_graph_becomes_what_mcl_makes_of_it) { check_recorded(&undirected_cases[_i], 8, undirected); }

TEST(weights_a_step_above_tied_ones_go_where_mcl_drops_them)
{
    check_recorded(&nearly_tied_cases[_i], 21, nearly_tied);
}

/* ---- the dense reference ------------------------------------------------------------------------------- */

enum { NODES = 30 };

typedef struct dense {
    float w[NODES][NODES]; /* 0: no arc */
} dense;

/* A weight stays if no more than `count` weights of its row are as heavy. */
static bool among_heaviest(const float *row, float weight, int count)
{
    int as_heavy = 0;
    for (int i = 0; i < NODES; i++) as_heavy += row[i] != 0 && row[i] >= weight;
    return as_heavy <= count;
}

static int degree(const dense *g, int j)
{
    int count = 0;
    for (int i = 0; i < NODES; i++) count += g->w[j][i] != 0;
    return count;
}

static dense dense_ceilnb(dense g, int count)
{
    const dense before = g;
    bool done[NODES] = {false};
    for (int turn = 0; turn < NODES; turn++) {
        int j = -1;
        for (int i = 0; i < NODES; i++)
            if (!done[i] && (j < 0 || degree(&before, i) > degree(&before, j))) j = i;
        done[j] = true;
        const dense now = g;
        for (int i = 0; i < NODES; i++)
            if (now.w[j][i] != 0 && !among_heaviest(now.w[j], now.w[j][i], count)) g.w[j][i] = g.w[i][j] = 0;
    }
    return g;
}

static float dense_square(const dense *g, int j, int i)
{
    double sum = 0;
    for (int k = 0; k < NODES; k++) sum += (double)g->w[j][k] * (double)g->w[k][i];
    return (float)sum;
}

static float dense_similarity(const dense *g, int j, int i)
{
    double sum = 0;
    if (i == j || g->w[j][i] == 0) return 0;
    for (int k = 0; k < NODES; k++) {
        const int others = degree(g, k) - (g->w[k][k] != 0);
        if (k != i && k != j && g->w[j][k] != 0 && g->w[i][k] != 0) sum += 1 / log2(others);
    }
    return fmaxf(g->w[j][i], (float)sum);
}

static float dense_self(const dense *g, int j)
{
    float heaviest = 0;
    for (int i = 0; i < NODES; i++)
        if (i != j) heaviest = fmaxf(heaviest, g->w[j][i]);
    return heaviest != 0 ? heaviest : 1;
}

typedef enum naive_kind {
    ADD, MIN, MAX, MUL, ARCMAX, ARCSUB, REVERSE, SELFRM, SELFMAX, KNN, KNNJ, CEILNB, ILS, STEP, VALUES
} naive_kind;

static const struct {
    const char *spec;
    naive_kind naive;
    int count;
} references[] = {
    {"#add()", ADD, 0},      {"#min()", MIN, 0},         {"#max()", MAX, 0},       {"#mul()", MUL, 0},
    {"#arcmax()", ARCMAX, 0}, {"#arcsub()", ARCSUB, 0},  {"#rev()", REVERSE, 0},   {"#tp()", REVERSE, 0},
    {"#selfrm()", SELFRM, 0}, {"#selfmax()", SELFMAX, 0}, {"#knn(1)", KNN, 1},     {"#knn(4)", KNN, 4},
    {"#knn(11)", KNN, 11},   {"#knnj(2)", KNNJ, 2},      {"#knnj(7)", KNNJ, 7},    {"#ceilnb(1)", CEILNB, 1},
    {"#ceilnb(5)", CEILNB, 5}, {"#ceilnb(9)", CEILNB, 9}, {"#ils()", ILS, 0},      {"#step(1)", STEP, 0},
    {"gq(0.2),mul(3),ceil(2),add(0.1)", VALUES, 0},
};

static float dense_value(float v)
{
    if (v == 0 || v < 0.2f) return 0;
    v = v * 3;
    return (v > 2 ? 2 : v) + 0.1f;
}

static dense dense_transform(naive_kind naive, const dense *g, int count)
{
    dense out;
    if (naive == CEILNB) return dense_ceilnb(*g, count);
    for (int j = 0; j < NODES; j++)
        for (int i = 0; i < NODES; i++) {
            const float a = g->w[j][i], b = g->w[i][j];
            const bool near = a != 0 && among_heaviest(g->w[j], a, count);
            const bool near_back = b != 0 && among_heaviest(g->w[i], b, count);
            float *w = &out.w[j][i];
            switch (naive) {
            case ADD: *w = a + b; break;
            case MIN: *w = fminf(a, b); break;
            case MAX: *w = fmaxf(a, b); break;
            case MUL: *w = a * b; break;
            case ARCMAX: *w = a >= b ? a : 0; break;
            case ARCSUB: *w = a - b; break;
            case REVERSE: *w = b; break;
            case SELFRM: *w = i == j ? 0 : a; break;
            case SELFMAX: *w = i == j ? dense_self(g, j) : a; break;
            case KNN: *w = near && near_back ? a : 0; break;
            case KNNJ: *w = fmaxf(near ? a : 0, near_back ? b : 0); break;
            case ILS: *w = dense_similarity(g, j, i); break;
            case STEP: *w = dense_square(g, j, i); break;
            case VALUES: *w = dense_value(a); break;
            default: *w = 0;
            }
        }
    return out;
}

/* Real weights or, full of ties, integers 1..4; a few loops. */
static dense random_dense(test_random *random, bool both_ways, bool ties)
{
    dense g = {0};
    for (int j = 0; j < NODES; j++)
        for (int i = 0; i < NODES; i++) {
            if (test_unit(random) > 0.3 || (i == j && test_below(random, 2))) continue;
            const float weight = ties ? (float)(1 + test_below(random, 4)) : (float)(0.01 + test_unit(random));
            g.w[j][i] = weight;
            if (both_ways) g.w[i][j] = weight;
        }
    return g;
}

static sp_csr graph_of_dense(sp_context *context, const dense *g)
{
    double numbers[NODES * NODES];
    for (int k = 0; k < NODES * NODES; k++) numbers[k] = (double)g->w[k / NODES][k % NODES];
    return test_from_dense(context, NODES, NODES, numbers, SP_F32);
}

CONTEXT_TEST(random_graphs_agree_with_the_dense_reference, 0, 2)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        test_random random = test_seed(seed);
        const bool both_ways = references[_i].naive == ILS || seed % 2;
        const dense g = random_dense(&random, both_ways, seed % 4 < 2);
        const dense expected = dense_transform(references[_i].naive, &g, references[_i].count);
        sp_csr graph = graph_of_dense(context, &g), wanted = graph_of_dense(context, &expected);
        ck_ok(context, apply(context, references[_i].spec, &graph));
        ck_ok(context, sp_csr_check(context, &graph));
        test_same(&graph, &wanted, seed);
        test_free(context, &graph, &wanted);
    }
}

/* ---- other properties ---------------------------------------------------------------------------------- */

/* With every other seed under heavy pruning, which the transform takes from its options. */
CONTEXT_TEST(clustering_keeps_the_arcs_within_clusters, 0, 2)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = test_seed(seed);
        sp_csr graph = test_communities(context, &random, 6, 8, 0.8, 0.05), start, limit;
        mcl_options options;
        mcl_run run;
        mcl_clustering clusters;
        mcl_options_default(&options);
        options.inflation = 3;
        if (seed % 2) {
            options.prune_number = 12;
            options.select = options.recover = 3;
        }
        ck_ok(context, mcl_start_matrix(context, &graph, NULL, &options, false, &start));
        ck_ok(context, mcl_iterate(context, &start, &options, NULL, NULL, &limit, &run));
        ck_ok(context, mcl_interpret(context, &limit, &graph, &options, &clusters));
        int cluster_of[48];
        for (int64_t c = 0; c < clusters.clusters; c++)
            for (int64_t m = clusters.offsets[c]; m < clusters.offsets[c + 1]; m++)
                cluster_of[clusters.members[m]] = (int)c;
        double expected[48 * 48] = {0};
        for (int j = 0; j < 48; j++)
            for (int64_t e = graph.row_offsets[j]; e < graph.row_offsets[j + 1]; e++)
                if (cluster_of[j] == cluster_of[graph.col_indices[e]])
                    expected[48 * j + graph.col_indices[e]] = test_value(&graph, e);
        sp_csr wanted = test_from_dense(context, 48, 48, expected, SP_F32);
        mcl_transform *transform = parse(context, "#mcl(3)");
        ck_ok(context, mcl_transform_graph(context, transform, seed % 2 ? &options : NULL, &graph));
        test_same(&graph, &wanted, seed);
        mcl_transform_free(context, transform);
        test_free(context, &graph, &start, &limit, &wanted);
        mcl_clustering_free(context, &clusters);
    }
}

TEST(threads_do_not_change_the_result)
{
    static const char *const specs[] = {"gq(0.1),mul(3)", "#knn(9)", "#knnj(9)", "#ceilnb(9)", "#ils()", "rand(0.5)"};
    sp_context *one = test_context(0, 1), *two = test_context(0, 2);
    test_random random = test_seed(5);
    sp_csr graph = test_communities(one, &random, 40, 40, 0.7, 0.01);
    for (size_t k = 0; k < COUNT(specs); k++) {
        sp_csr a, b;
        ck_ok(one, sp_csr_copy(one, &graph, SP_HOST, &a));
        ck_ok(two, sp_csr_copy(two, &graph, SP_HOST, &b));
        ck_ok(one, apply(one, specs[k], &a));
        ck_ok(two, apply(two, specs[k], &b));
        test_same(&a, &b, random.seed);
        sp_csr_free(one, &a);
        sp_csr_free(two, &b);
    }
    sp_csr_free(one, &graph);
    sp_context_destroy(one);
    sp_context_destroy(two);
}

CONTEXT_TEST(rand_keeps_about_the_share_asked_for, 0, 2)
{
    static const struct {
        const char *spec;
        double low, high;
    } cases[] = {
        {"rand(0)", 0, 0}, {"rand(1)", 1, 1}, {"rand(0.3)", 0.27, 0.33}, {"rand(0.8),rand(0.5)", 0.37, 0.43},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        test_random random = test_seed(9);
        sp_csr graph = test_communities(context, &random, 20, 30, 0.8, 0.01);
        const double before = (double)graph.nnz;
        ck_ok(context, apply(context, cases[k].spec, &graph));
        const double share = (double)graph.nnz / before;
        ck_assert_msg(share >= cases[k].low && share <= cases[k].high, "%s kept %g", cases[k].spec, share);
        sp_csr_free(context, &graph);
    }
}

/* What -abc-tf makes of a weight, as mcl -abc-tf ... -write-graph showed. */
CONTEXT_TEST(value_lists_run_in_f32, 0, 1)
{
    static const struct {
        const char *spec;
        double weight, expected;
    } cases[] = {
        {"mul(0.1),mul(3)", 0.3, 0.0900000036}, {"mul(0.1),mul(3)", 1.7, 0.50999999}, {"add(-0.1)", 0.3, 0.200000018},
        {"add(-0.1)", 0.1, 0},                  {"gq(0.2),add(1)", 0.3, 1.29999995},  {"gq(0.2),add(1)", 0.1, 0},
        {"acos()", 0.1, 1.47062886},            {"acos()", 1.7, 0},                   {"mul(0),add(1)", 2.5, 1},
        {" gq( 1 ) ,\tmul (2) ", 3.3, 6.5999999}, {"", 0.3, 0.300000012},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        mcl_transform *transform;
        ck_ok(context, mcl_transform_parse(context, cases[k].spec, true, &transform));
        const double made = mcl_transform_value(transform, cases[k].weight);
        ck_assert_msg(made == (double)(float)cases[k].expected, "%s of %g: %.9g instead of %.9g", cases[k].spec,
                      cases[k].weight, made, cases[k].expected);
        mcl_transform_free(context, transform);
    }
}

/* ---- mistakes ------------------------------------------------------------------------------------------ */

CONTEXT_TEST(mistakes_in_a_list_are_named, 0, 1)
{
    static const struct {
        const char *spec;
        bool values_only;
        sp_status status;
        const char *said;
    } cases[] = {
        {"foo(1)", false, SP_ERROR_ARGUMENT, "\"foo\""},
        {"gq(1),#foo()", false, SP_ERROR_ARGUMENT, "\"#foo\""},
        {"lt()", false, SP_ERROR_ARGUMENT, "lt needs a number"},
        {"#knn( )", false, SP_ERROR_ARGUMENT, "#knn needs a number"},
        {"abs(2)", false, SP_ERROR_ARGUMENT, "abs takes no number (got \"2\")"},
        {"#max(1)", false, SP_ERROR_ARGUMENT, "#max takes no number"},
        {"mul(2x)", false, SP_ERROR_ARGUMENT, "\"2x\" is no number"},
        {"mul(1,5)", false, SP_ERROR_ARGUMENT, "\"1,5\" is no number"},
        {"mul(nan)", false, SP_ERROR_ARGUMENT, "\"nan\" is no number"},
        {"mul(1e39)", false, SP_ERROR_ARGUMENT, "1e+39 is too large"},
        {"log(-2)", false, SP_ERROR_ARGUMENT, "base -2"},
        {"#knn(-1)", false, SP_ERROR_ARGUMENT, "#knn: -1"},
        {"#knn(0.3)", false, SP_ERROR_ARGUMENT, "#knn: 0.3"},
        {"#ceilnb(3e9)", false, SP_ERROR_ARGUMENT, "#ceilnb: 3e+09"},
        {"#mcl(0)", false, SP_ERROR_ARGUMENT, "inflation 0"},
        {"#symmcl(31)", false, SP_ERROR_ARGUMENT, "inflation 31"},
        {"#step(31)", false, SP_ERROR_ARGUMENT, "31 squarings"},
        {"lt(2) mul(3)", false, SP_ERROR_ARGUMENT, "a comma at \"mul(3)\""},
        {"lt(2),", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"\""},
        {",lt(2)", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \",lt(2)\""},
        {"lt(2", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"lt(2\""},
        {"lt", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"lt\""},
        {"LT(2)", false, SP_ERROR_ARGUMENT, "NAME(NUMBER) at \"LT(2)\""},
        {"#knn(3)", true, SP_ERROR_ARGUMENT, "#knn works on whole graphs"},
        {"rand(0.5)", true, SP_ERROR_UNSUPPORTED, "rand"},
        {"#tug(2)", false, SP_ERROR_UNSUPPORTED, "#tug"},
        {"#shrug()", false, SP_ERROR_UNSUPPORTED, "#shrug"},
        {"#ssq(1)", false, SP_ERROR_UNSUPPORTED, "#ssq"},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        mcl_transform *transform = NULL;
        const sp_status status = mcl_transform_parse(context, cases[k].spec, cases[k].values_only, &transform);
        ck_assert_msg(status == cases[k].status && !transform, "%s: %s", cases[k].spec, sp_status_string(status));
        ck_assert_msg(strstr(sp_last_error(context), cases[k].said) != NULL, "%s: \"%s\" lacks \"%s\"",
                      cases[k].spec, sp_last_error(context), cases[k].said);
    }
}

CONTEXT_TEST(graphs_that_an_operation_cannot_take_are_refused, 0, 2)
{
    static const struct {
        const char *spec;
        sp_status status;
    } cases[] = {
        {"mul(1e38),mul(1e38)", SP_ERROR_NOT_FINITE}, {"log(1)", SP_ERROR_NOT_FINITE},
        {"mul(1e37),#mul()", SP_ERROR_NOT_FINITE},    {"mul(1e37),#step(1)", SP_ERROR_NOT_FINITE},
        {"add(-2),#knn(2)", SP_ERROR_UNSUPPORTED},    {"add(-2),#ceilnb(2)", SP_ERROR_UNSUPPORTED},
        {"#ils()", SP_ERROR_UNSUPPORTED},             {"add(-2),#mcl(2)", SP_ERROR_ARGUMENT},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        sp_csr graph = graph_of_text(context, 6, directed);
        const sp_status status = apply(context, cases[k].spec, &graph);
        ck_assert_msg(status == cases[k].status, "%s: %s (%s)", cases[k].spec, sp_status_string(status),
                      sp_last_error(context));
        ck_assert_msg(sp_last_error(context)[0] != '\0', "%s: no sentence", cases[k].spec);
        sp_csr_free(context, &graph);
    }
    sp_csr wide = test_from_dense(context, 1, 2, (const double[]){1, 2}, SP_F32);
    ck_assert_int_eq(apply(context, "gq(1)", &wide), SP_ERROR_ARGUMENT);
    sp_csr_free(context, &wide);
}

static const char *const brutal_specs[] = {"gq(0.5),mul(2)", "#knn(3)",   "#knnj(3)", "#ceilnb(2)", "#max(),#ils()",
                                           "#selfmax()",     "#step(2)",  "#rev()",   "#arcsub()",  "#mcl(2)",
                                           "#symmcl(2)",     "#selfrm()", "#add(),gq(1)"};

/* Allocation after allocation fails, alone or with all later ones, until the list succeeds. */
static void exhaust(const char *spec, bool fail_all)
{
    test_heap heap = {.fail_at = -1};
    const sp_allocator allocator = test_allocator(&heap);
    const sp_context_options options = {.device = "cpu", .threads = 1, .allocator = &allocator};
    sp_context *context;
    ck_assert_int_eq(sp_context_create(&options, &context), SP_OK);
    mcl_transform *transform = parse(context, spec);
    const int64_t blocks = heap.live_blocks;
    sp_status status = SP_ERROR_HOST_MEMORY;
    int64_t n = 0;
    for (; status != SP_OK; n++) {
        sp_csr graph = graph_of_text(context, 6, directed);
        heap.allocations = 0;
        heap.fail_at = n;
        heap.fail_all = fail_all;
        status = mcl_transform_graph(context, transform, NULL, &graph);
        heap.fail_at = -1;
        ck_assert_msg(status == SP_OK || status == SP_ERROR_HOST_MEMORY, "%s, allocation %d: %s", spec, (int)n,
                      sp_status_string(status));
        sp_csr_free(context, &graph);
        ck_assert_msg(heap.live_blocks == blocks, "%s, allocation %d: %d blocks leaked", spec, (int)n,
                      (int)(heap.live_blocks - blocks));
        ck_assert_msg(n < 2000, "%s: no success after %d failed allocations", spec, (int)n);
    }
    mcl_transform_free(context, transform);
    sp_context_destroy(context);
    ck_assert_int_eq(heap.live_blocks, 0);
}

TEST(failed_allocations_leak_nothing)
{
    exhaust(brutal_specs[_i], false);
    exhaust(brutal_specs[_i], true);
}


static const test_entry tests[] = {
    CASE("results", 120),
    TURNS(directed_graph_becomes_what_mcl_makes_of_it, COUNT(directed_cases)),
    TURNS(undirected_graph_becomes_what_mcl_makes_of_it, COUNT(undirected_cases)),
    TURNS(weights_a_step_above_tied_ones_go_where_mcl_drops_them, COUNT(nearly_tied_cases)),
    TURNS(random_graphs_agree_with_the_dense_reference, COUNT(references)),
    ONCE(clustering_keeps_the_arcs_within_clusters),
    ONCE(threads_do_not_change_the_result),
    ONCE(rand_keeps_about_the_share_asked_for),
    ONCE(value_lists_run_in_f32),
    CASE("mistakes", 120),
    ONCE(mistakes_in_a_list_are_named),
    ONCE(graphs_that_an_operation_cannot_take_are_refused),
    TURNS(failed_allocations_leak_nothing, COUNT(brutal_specs)),
    {0},
};

int main(void) { return test_run("transform", tests); }
