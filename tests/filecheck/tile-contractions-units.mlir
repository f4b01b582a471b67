// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: znver4
//
// Steps are taken four at a time, as words of bytes. The left operand's steps are neighbours in
// memory, which is read in words, and gets another sign while it is copied; the right one's words
// are put together, with a zero behind its last step. What the other sign adds to the sums of a
// column is computed once for a panel. A sum whose order is fixed has no unit.

// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<4096xi8> to memref<1024xi32>
// CHECK:           affine.load %arg1[%[[K:.*]] * 4, %{{.*}}] : memref<64x96xi8>
// CHECK:           arith.extui
// CHECK:           affine.load %arg1[%[[K]] * 4 + 1, %{{.*}}]
// CHECK:           arith.shli
// CHECK:           arith.ori
// CHECK:           affine.store %{{.*}}, %[[COLUMNS:.*]][
// CHECK:           %[[WORD:.*]] = affine.load %[[A]][
// CHECK:           arith.xori %[[WORD]], %{{.*}} : i32
// CHECK:           affine.store %{{.*}}, %[[ROWS:.*]][
// CHECK:           %[[EXCESS:.*]] = affine.for %{{.*}} = 0 to 16 iter_args(
// CHECK:             %[[OFFSET:.*]] = arith.constant -2139062144 : i32
// CHECK:             llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%{{.*}}, %[[OFFSET]], %{{.*}}) : (i32, i32, i32) -> i32
// CHECK:           arith.subi %{{.*}}, %[[EXCESS]] : i32
// CHECK:           affine.for %{{.*}} = 0 to 16 iter_args(
// CHECK:             %[[C:.*]] = affine.load %[[COLUMNS]][
// CHECK:             %[[R:.*]] = affine.load %[[ROWS]][
// CHECK:             llvm.call_intrinsic "llvm.polyblocks.dot.vpdpbusd"(%{{.*}}, %[[R]], %[[C]]) : (i32, i32, i32) -> i32
// CHECK:         {polyblocks.lanes

// A row's last word is not full. It is made apart, so that the others are made in vectors.
// CHECK:           affine.for %[[K:.*]] = 0 to 32 {
// CHECK:             affine.load %arg3[%{{.*}}, %[[K]] * 2] : memref<64x65xbf16>
// CHECK:             affine.load %arg3[%{{.*}}, %[[K]] * 2 + 1] : memref<64x65xbf16>
// CHECK:           }
// CHECK:           affine.load %arg3[%{{.*}}, 64] : memref<64x65xbf16>
// CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : i16
// CHECK:         "llvm.polyblocks.dot.vdpbf16ps"
// CHECK:         {polyblocks.lanes

// CHECK-NOT:     llvm.call_intrinsic

module {
  func.func @main(%a: memref<64x64xi8>, %b: memref<64x96xi8>, %c: memref<64x96xi32>,
                  %d: memref<64x65xbf16>, %e: memref<65x96xbf16>, %f: memref<64x96xf32>,
                  %g: memref<64x96xf32>) {
    %z = arith.constant 0 : i32
    %zf = arith.constant 0.0 : f32
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 96 {
        %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (i32) {
          %x = affine.load %a[%i, %k] : memref<64x64xi8>
          %y = affine.load %b[%k, %j] : memref<64x96xi8>
          %x32 = arith.extsi %x : i8 to i32
          %y32 = arith.extsi %y : i8 to i32
          %p = arith.muli %x32, %y32 : i32
          %t = arith.addi %s, %p : i32
          affine.yield %t : i32
        }
        affine.store %r, %c[%i, %j] : memref<64x96xi32>
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 96 {
        %r = affine.for %k = 0 to 65 iter_args(%s = %zf) -> (f32) {
          %x = affine.load %d[%i, %k] : memref<64x65xbf16>
          %y = affine.load %e[%k, %j] : memref<65x96xbf16>
          %x32 = arith.extf %x : bf16 to f32
          %y32 = arith.extf %y : bf16 to f32
          %p = arith.mulf %x32, %y32 fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %f[%i, %j] : memref<64x96xf32>
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 96 {
        %r = affine.for %k = 0 to 65 iter_args(%s = %zf) -> (f32) {
          %x = affine.load %d[%i, %k] : memref<64x65xbf16>
          %y = affine.load %e[%k, %j] : memref<65x96xbf16>
          %x32 = arith.extf %x : bf16 to f32
          %y32 = arith.extf %y : bf16 to f32
          %p = arith.mulf %x32, %y32 : f32
          %t = arith.addf %s, %p : f32
          affine.yield %t : f32
        }
        affine.store %r, %g[%i, %j] : memref<64x96xf32>
      }
    }
    return
  }
}
