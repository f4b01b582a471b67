// PASSES: outline-kernels
//
// A serial loop of the program is one kernel with its nests. One whose nests threads share stays,
// and a view that begins at a run-time offset is made in the kernel. A reduction that one thread
// keeps in a register is a kernel that returns it.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[S:.*]] = call @loop1(%[[Z:.*]], %[[X:.*]]) : (f32, memref<8x64xf32>) -> f32
// CHECK-NEXT:    affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      memref.subview
// CHECK:           func.call @loop2_neg(%{{.*}}, %{{.*}}, %[[X]], %[[I]]) {polyblocks.team}
// CHECK:         %[[T:.*]] = call @total(%[[Z]], %[[X]]) : (f32, memref<8x64xf32>) -> f32
// CHECK-NEXT:    affine.store %[[T]], %[[X]][0, 0]
// CHECK:         return

// CHECK-LABEL: func.func private @loop1
// CHECK-SAME:  polyblocks.kind = "loop"
// CHECK-SAME:  polyblocks.nests = ["loop1", "loop1_neg"]
// CHECK:         %[[R:.*]] = affine.for
// CHECK:           affine.for
// CHECK-NOT:       polyblocks.kernel
// CHECK:         return %[[R]] : f32

// CHECK-LABEL: func.func private @loop2_neg
// CHECK-SAME:  (%{{.*}}: index, %{{.*}}: index, %[[B:.*]]: memref<8x64xf32> {{{.*}}}, %[[K:.*]]: index)
// CHECK:         %[[V:.*]] = memref.subview %[[B]][%[[K]], 0] [1, 64] [1, 1]
// CHECK:         affine.load %[[V]]

// CHECK-LABEL: func.func private @total
// CHECK-SAME:  polyblocks.kind = "reduction"
// CHECK-SAME:  polyblocks.nests = ["total"]
// CHECK:         %[[R:.*]] = affine.for
// CHECK:         return %[[R]] : f32
func.func @main(%z: f32, %x: memref<8x64xf32>) {
  %s = affine.for %i = 0 to 8 iter_args(%a = %z) -> (f32) {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<8x64xf32>
      %n = arith.negf %v : f32
      affine.store %n, %x[%i, %j] : memref<8x64xf32>
    } {polyblocks.kernel = "loop1_neg", polyblocks.kind = "pointwise"}
    %b = arith.addf %a, %a : f32
    affine.yield %b : f32
  } {polyblocks.region = "loop1"}
  affine.for %i = 0 to 8 {
    %row = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    affine.parallel (%j) = (0) to (64) {
      %v = affine.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
      %n = arith.negf %v : f32
      affine.store %n, %row[%j] : memref<64xf32, strided<[1], offset: ?>>
    } {polyblocks.kernel = "loop2_neg", polyblocks.kind = "pointwise", polyblocks.level = "team"}
  } {polyblocks.region = "loop2"}
  %t = affine.for %i = 0 to 8 iter_args(%a = %z) -> (f32) {
    %v = affine.load %x[%i, 0] : memref<8x64xf32>
    %b = arith.addf %a, %v : f32
    affine.yield %b : f32
  } {polyblocks.kernel = "total", polyblocks.kind = "reduction"}
  affine.store %t, %x[0, 0] : memref<8x64xf32>
  return
}
