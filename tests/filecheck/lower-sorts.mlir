// PASSES: lower-sorts
//
// Words are sorted by the four bytes of their upper half, from the lowest one to the highest one,
// whose sign is turned.

// CHECK-LABEL: @main
// CHECK:         %[[OTHER:.*]] = memref.alloc() : memref<8x1000xi64>
// CHECK:         %[[STARTS:.*]] = memref.alloc() : memref<8x1024xi32>
// CHECK:         affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 1024 {
// CHECK:           affine.for %{{.*}} = 0 to 1000 {
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[STARTS]][%[[R]],
// CHECK:           affine.for %{{.*}} = 0 to 256 iter_args
// CHECK:           affine.for %{{.*}} = 0 to 256 iter_args
// CHECK:           affine.for %{{.*}} = 0 to 256 iter_args
// CHECK:           affine.for %{{.*}} = 0 to 256 iter_args
// CHECK:           affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT:        %[[W:.*]] = affine.load %arg0[%[[R]], %[[I]]]
// CHECK:             arith.shrui %[[W]], %c32{{.*}} : i64
// CHECK:             %[[P:.*]] = memref.load %[[STARTS]][%[[R]], %[[D:.*]]]
// CHECK:             memref.store %{{.*}}, %[[STARTS]][%[[R]], %[[D]]]
// CHECK:             memref.store %[[W]], %[[OTHER]][%[[R]],
// CHECK:           affine.for
// CHECK:             memref.store %{{.*}}, %arg0[%[[R]],
// CHECK:           affine.for
// CHECK:             memref.store %{{.*}}, %[[OTHER]][%[[R]],
// CHECK:           affine.for
// CHECK:             arith.xori %{{.*}}, %c128{{.*}} : i64
// CHECK:             memref.store %{{.*}}, %arg0[%[[R]],
// CHECK-NOT:     tm_tensor
func.func @main(%words: memref<8x1000xi64>) {
  tm_tensor.sort dimension(1) outs(%words : memref<8x1000xi64>) {
  ^bb0(%a: i64, %b: i64):
    %c32 = arith.constant 32 : i64
    %k = arith.shrsi %a, %c32 : i64
    %l = arith.shrsi %b, %c32 : i64
    %c = arith.cmpi slt, %k, %l : i64
    tm_tensor.yield %c : i1
  }
  return
}

// Long rows are sorted by three digits of 11, 11 and 10 bits, and copied back.

// CHECK-LABEL: @long
// CHECK:         %[[OTHER:.*]] = memref.alloc() : memref<300001xi64>
// CHECK:         memref.alloc() : memref<5120xi32>
// CHECK-COUNT-3: memref.store %{{.*}} : memref<5120xi32>
// CHECK:         memref.store %{{.*}}, %[[OTHER]][
// CHECK:         memref.store %{{.*}}, %arg0[
// CHECK:         arith.xori %{{.*}}, %c512{{.*}} : i64
// CHECK:         memref.store %{{.*}}, %[[OTHER]][
// CHECK:         affine.for %[[I:.*]] = 0 to 300001 {
// CHECK-NEXT:      %[[W:.*]] = affine.load %[[OTHER]][%[[I]]]
// CHECK-NEXT:      affine.store %[[W]], %arg0[%[[I]]]
func.func private @long(%words: memref<300001xi64>) {
  tm_tensor.sort dimension(0) outs(%words : memref<300001xi64>) {
  ^bb0(%a: i64, %b: i64):
    %c32 = arith.constant 32 : i64
    %k = arith.shrsi %a, %c32 : i64
    %l = arith.shrsi %b, %c32 : i64
    %c = arith.cmpi slt, %k, %l : i64
    tm_tensor.yield %c : i1
  }
  return
}

// Threads sort parts of a long row, here of floating-point numbers from the greatest one on, and merge
// these in pairs. A thread merges two parts of a pair at once, whose first elements a bisection finds.

// CHECK-LABEL: @runs
// CHECK:         memref.alloc() : memref<8x37504xi32>
// CHECK:         memref.alloc() : memref<8x37504xi32>
// CHECK:         affine.for %[[R:.*]] = 0 to 8 {
// CHECK:           affine.load %arg0[%[[R]] * 37504 + %{{.*}}]
// CHECK:           arith.addi %{{.*}}, %c-8388607
// CHECK:           arith.minsi
// CHECK:         memref.alloc() : memref<300032xi32>
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 2 {
// CHECK:             affine.for %{{.*}} = 0 to 16 iter_args
// CHECK:             affine.for %{{.*}} = 0 to 16 iter_args
// CHECK:             affine.for %[[K:.*]] = 0 to 18752 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (i32, i64) {
// CHECK:               arith.cmpi sgt
// CHECK:               affine.store
// CHECK:               affine.store
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:             affine.store %{{.*}}, %arg0[
func.func private @runs(%keys: memref<300032xi32>) {
  "tm_tensor.sort"(%keys) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi sgt, %a, %b : i32
    "tm_tensor.yield"(%c) : (i1) -> ()
  }) {polyblocks.infinity = 2139095040 : i64} : (memref<300032xi32>) -> ()
  return
}
