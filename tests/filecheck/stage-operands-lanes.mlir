// PASSES: stage-operands
// TARGET: gpu
//
// Tiles by arithmetic of lanes. Loaded elements go to shared memory between two barriers: no thread uses
// the tile before any more, and all of them see this one. Loads of the next tile begin, if there is one
// that is whole; then a thread goes through the steps. The rest of the steps is a tile of its own.

// CHECK-DAG:   #[[NEXT:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 8 + 8)>
// CHECK-DAG:   #[[END:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 8 + 16, 24)>
// CHECK-DAG:   #[[BEGIN:.*]] = affine_map<(d0) -> (d0 * 8)>
// CHECK-LABEL: func.func @main
// CHECK:           %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{.*}}xf32, "shared">
// CHECK-NEXT:      %[[X:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32, "registers">
// CHECK-NEXT:      %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<{{.*}}xf32, "shared">
// CHECK-NEXT:      %[[Y:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32, "registers">
// CHECK-NEXT:      "polyblocks.copy"(%arg0, %[[X]], %[[I:.*]]) {{{.*}}kind = "registers"
// CHECK-NEXT:      "polyblocks.copy"(%arg1, %[[Y]], %[[J:.*]]) {{{.*}}kind = "registers"
// CHECK-NEXT:      %[[S:.*]] = affine.for %[[T:.*]] = 0 to 3 iter_args(%[[U:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        "polyblocks.copy"(%[[X]], %[[A]], %[[I]], %[[T]]) {{{.*}}kind = "registers"
// CHECK-NEXT:        "polyblocks.copy"(%[[Y]], %[[B]], %[[J]], %[[T]]) {{{.*}}kind = "registers"
// CHECK-NEXT:        "polyblocks.barrier"() {scope = "block"}
// CHECK-NEXT:        "polyblocks.copy"(%arg0, %[[X]], %[[I]], %[[T]]) {{{.*}}lower = [#[[NEXT]]], {{.*}}upper = [#[[END]]]}
// CHECK-NEXT:        "polyblocks.copy"(%arg1, %[[Y]], %[[J]], %[[T]])
// CHECK-NEXT:        affine.for %[[K:.*]] = #[[BEGIN]](%[[T]]) to #{{.*}}(%[[T]]) iter_args(%{{.*}} = %[[U]]) -> (f32) {
// CHECK-NEXT:          affine.load %[[A]][
// CHECK-NEXT:          affine.load %[[B]][
// CHECK:             affine.yield
// CHECK:           "polyblocks.copy"(%arg0, %[[X]], %[[I]])
// CHECK:           "polyblocks.barrier"
// CHECK:           %[[R:.*]] = affine.for %{{.*}} = 24 to min #{{.*}}() iter_args(%{{.*}} = %[[S]]) -> (f32) {
// CHECK:           affine.store %[[R]], %arg2[%[[I]], %[[J]]]
// CHECK:         {polyblocks.schedule = {{.*}}steps = {{\[\[}}0, 27]]
module {
  func.func @main(%a: memref<64x27xf32>, %b: memref<27x64xf32>, %c: memref<64x64xf32>) {
    %zero = arith.constant 0.0 : f32
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %s = affine.for %k = 0 to 27 iter_args(%t = %zero) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<64x27xf32>
          %y = affine.load %b[%k, %j] : memref<27x64xf32>
          %z = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        affine.store %s, %c[%i, %j] : memref<64x64xf32>
      }
    } {polyblocks.schedule = {
         kernel = "product", resident = 1, register_tile = [2, 2], block_tile = [16, 16],
         k_block = 8}}
    return
  }
}
