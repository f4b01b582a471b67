// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// The panels of %b, which is constant, are filled by the preparation, all of them; there is no copy
// of its columns in the nest. What is left of the columns has a panel of its own.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<960x640xf32>
// CHECK-SAME:    %[[B:[a-z0-9]+]]: memref<250x640xf32>
// CHECK:         %[[PANELS:.*]] = memref.alloc() : memref<16x640x16xf32>
// CHECK:         scf.if
// CHECK:           affine.for %[[P:.*]] = 0 to 15 {
// CHECK-NEXT:        affine.for %[[K:.*]] = 0 to 640 {
// CHECK-NEXT:          affine.for %[[L:.*]] = 0 to 16 {
// CHECK-NEXT:            affine.load %[[B]][%[[P]] * 16 + %[[L]], %[[K]]]
// CHECK-NEXT:            affine.store %{{.*}}, %[[PANELS]][%[[P]], %[[K]], %[[L]]]
// CHECK:           affine.for %{{.*}} = 0 to 10 {
// CHECK:             affine.store %{{.*}}, %[[PANELS]][15,
// CHECK:         } {polyblocks.region = "preparation"}
// CHECK-NOT:     affine.load %[[B]]
// CHECK:         affine.load %[[PANELS]][
// CHECK:         {polyblocks.lanes = 16 : i64}

module {
  func.func @main(%a: memref<960x640xf32> {polyblocks.arg = {role = "input", name = "a", dtype = "float32", shape = array<i64: 960, 640>, strides = array<i64: 640, 1>, constant = false, updates = -1 : i64}},
                  %b: memref<250x640xf32> {polyblocks.arg = {role = "input", name = "b", dtype = "float32", shape = array<i64: 250, 640>, strides = array<i64: 640, 1>, constant = true, updates = -1 : i64}},
                  %c: memref<960x250xf32> {polyblocks.arg = {role = "output", name = "c", dtype = "float32", shape = array<i64: 960, 250>, strides = array<i64: 250, 1>, constant = false, updates = -1 : i64}}) {
    %true = arith.constant true
    scf.if %true {
    } {polyblocks.region = "preparation"}
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 960 {
      affine.for %j = 0 to 250 {
        %r = affine.for %k = 0 to 640 iter_args(%s = %z) -> (f32) {
          %x = affine.load %a[%i, %k] : memref<960x640xf32>
          %y = affine.load %b[%j, %k] : memref<250x640xf32>
          %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
          %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
          affine.yield %t : f32
        }
        affine.store %r, %c[%i, %j] : memref<960x250xf32>
      }
    }
    return
  }
}
