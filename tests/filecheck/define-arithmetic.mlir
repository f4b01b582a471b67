// PASSES: define-arithmetic
// ARCH: neoverse-n1
//
// What does not fit an integer becomes the lowest one, by way of 32 bits if it is narrower; a count
// that is not less than the width shifts everything out. What is known to be in range stays.

// CHECK-LABEL: func.func @scalars
// CHECK:         %[[ANY:.*]] = arith.fptosi %arg0 : f32 to i32
// CHECK:         %[[SIZE:.*]] = math.absf %arg0 : f32
// CHECK:         %[[FITS:.*]] = arith.cmpf olt, %[[SIZE]], %{{.*}} : f32
// CHECK:         arith.select %[[FITS]], %[[ANY]], %{{.*}} : i32
// CHECK:         %[[ANY:.*]] = arith.fptosi %arg0 : f32 to i32
// CHECK:         %[[INT:.*]] = arith.select %{{.*}}, %[[ANY]], %{{.*}} : i32
// CHECK:         arith.trunci %[[INT]] : i32 to i8
// CHECK:         %[[ANY:.*]] = arith.fptoui %arg1 : f64 to i64
// CHECK:         arith.cmpf ogt, %arg1, %{{.*}} : f64
// CHECK:         arith.cmpf olt, %arg1, %{{.*}} : f64
// CHECK:         arith.select %{{.*}}, %[[ANY]], %{{.*}} : i64
// CHECK:         arith.fptosi %{{.*}} : f32 to i32
// CHECK-NEXT:    return
func.func @scalars(%x: f32, %y: f64) -> (i32, i8, i64, i32) {
  %a = arith.fptosi %x : f32 to i32
  %b = arith.fptosi %x : f32 to i8
  %c = arith.fptoui %y : f64 to i64
  %three = arith.constant 3.5 : f32
  %d = arith.fptosi %three : f32 to i32
  return %a, %b, %c, %d : i32, i8, i64, i32
}

// CHECK-LABEL: func.func @shifts
// CHECK:         %[[FITS:.*]] = arith.cmpi ult, %arg1, %{{.*}} : i32
// CHECK:         %[[ANY:.*]] = arith.shli %arg0, %arg1 : i32
// CHECK:         arith.select %[[FITS]], %[[ANY]], %{{.*}} : i32
// CHECK:         %[[LAST:.*]] = arith.minui %arg1, %{{.*}} : i32
// CHECK:         arith.shrsi %arg0, %[[LAST]] : i32
// CHECK:         arith.cmpi ult, %{{.*}}, %{{.*}} : vector<4xi64>
// CHECK:         arith.shrui %arg2
// CHECK:         arith.select
func.func @shifts(%x: i32, %n: i32, %v: vector<4xi64>) -> (i32, i32, vector<4xi64>) {
  %a = arith.shli %x, %n : i32
  %b = arith.shrsi %x, %n : i32
  %far = arith.constant dense<64> : vector<4xi64>
  %c = arith.shrui %v, %far : vector<4xi64>
  return %a, %b, %c : i32, i32, vector<4xi64>
}

// CHECK-LABEL: func.func @known
// CHECK-NOT:     arith.minui
// CHECK:         arith.cmpi
// CHECK-NOT:     arith.cmpi
// CHECK:         return
func.func @known(%x: i32, %n: i32, %w: i64, %p: i8) -> (i32, i32, i32, i64, i64) {
  %c5 = arith.constant 5 : i32
  %c31 = arith.constant 31 : i32
  %a = arith.shli %x, %c5 : i32
  %masked = arith.andi %n, %c31 : i32
  %b = arith.shrsi %x, %masked : i32
  %back = arith.subi %c31, %masked : i32
  %c = arith.shrui %x, %back : i32
  %wide = arith.extui %masked : i32 to i64
  %d = arith.shli %w, %wide : i64
  %c26 = arith.constant 26 : i32
  %top = arith.shrui %n, %c26 : i32
  %count = arith.extsi %top : i32 to i64
  %e = arith.shrui %w, %count : i64
  %c64 = arith.constant 64 : i64
  %zero = arith.constant 0 : i64
  %fits = arith.cmpi ult, %w, %c64 : i64
  %safe = arith.select %fits, %w, %zero : i64
  %f = arith.shli %e, %safe : i64
  return %a, %b, %c, %d, %f : i32, i32, i32, i64, i64
}
