// PASSES: tile-contractions
// ARCH: sapphirerapids
//
// A unit of tiles multiplies 32 rows and 32 columns at a time. Results that are its sums go where
// they belong from there; others wait in a buffer, and what follows is done in vectors. Rows are used
// where they are, columns are copied as words: panels of 32 columns, step by step.

// CHECK:         #[[ROWS:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (d0 * 2048 + s0 * 64 + {{.*}} + s1)>
// CHECK:         #[[PANEL:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (d2, s0, s1)>
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<{{.*}}xi32>
// CHECK:         affine.store %{{.*}}, %[[COLUMNS:.*]][
// CHECK:         affine.for %[[M:.*]] = 0 to min #{{.*}} {
// CHECK:           affine.for %[[N:.*]] = 0 to {{[0-9]+}} {
// CHECK-NEXT:        "polyblocks.multiply"(%[[A]], %[[COLUMNS]], %arg2, %[[M]], {{.*}}, %[[N]])
// CHECK-SAME:          {a = #[[ROWS]], {{.*}} b = #[[PANEL]], shape = array<i64: 32, 32, 64>, unit = "tdpbssd"
// CHECK-NOT:     polyblocks.lanes

// CHECK:         "polyblocks.multiply"({{[^,]*, [^,]*}}, %[[SUMS:[^,]*]], {{.*}} unit = "tdpbf16ps"
// CHECK:         affine.load %[[SUMS]][
// CHECK:         arith.truncf
// CHECK:         affine.store %{{.*}}, %arg5[
// CHECK:         {polyblocks.lanes = 32 : i64}
module {
  func.func @main(%a: memref<2048x256xi8>, %b: memref<256x2048xi8>, %c: memref<2048x2048xi32>,
                  %d: memref<2048x256xbf16>, %e: memref<256x2048xbf16>, %f: memref<2048x2048xbf16>) {
    %z = arith.constant 0 : i32
    %zf = arith.constant 0.0 : f32
    affine.for %i = 0 to 2048 {
      affine.for %j = 0 to 2048 {
        %r = affine.for %k = 0 to 256 iter_args(%s = %z) -> (i32) {
          %x = affine.load %a[%i, %k] : memref<2048x256xi8>
          %y = affine.load %b[%k, %j] : memref<256x2048xi8>
          %x32 = arith.extsi %x : i8 to i32
          %y32 = arith.extsi %y : i8 to i32
          %p = arith.muli %x32, %y32 : i32
          %t = arith.addi %s, %p : i32
          affine.yield %t : i32
        }
        affine.store %r, %c[%i, %j] : memref<2048x2048xi32>
      }
    } {polyblocks.schedule = {unit = "tdpbssd", register_tile = [32, 32], transposed = false}}
    affine.for %i = 0 to 2048 {
      affine.for %j = 0 to 2048 {
        %r = affine.for %k = 0 to 256 iter_args(%s = %zf) -> (f32) {
          %x = affine.load %d[%i, %k] : memref<2048x256xbf16>
          %y = affine.load %e[%k, %j] : memref<256x2048xbf16>
          %x32 = arith.extf %x : bf16 to f32
          %y32 = arith.extf %y : bf16 to f32
          %p = arith.mulf %x32, %y32 fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        %n = arith.truncf %r : f32 to bf16
        affine.store %n, %f[%i, %j] : memref<2048x2048xbf16>
      }
    } {polyblocks.schedule = {unit = "tdpbf16ps", register_tile = [32, 32], transposed = false}}
    return
  }
}
