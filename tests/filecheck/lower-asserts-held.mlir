// PASSES: lower-asserts
//
// Equal conditions are found across loops without checks, but what such a loop stores is loaded
// again behind it.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  %[[I:.*]]: memref<8xindex>, %[[X:.*]]: memref<64xf32>
// CHECK:         arith.cmpi slt
// CHECK:         cf.cond_br
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %[[I]]
// CHECK-NOT:     cf.cond_br
// CHECK:         %[[AGAIN:.*]] = memref.load %[[I]]
// CHECK:         %[[OK:.*]] = arith.cmpi slt, %[[AGAIN]]
// CHECK:         cf.cond_br %[[OK]]
func.func @main(%i: memref<8xindex>, %x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = memref.load %i[%c0] : memref<8xindex>
  %a = arith.cmpi slt, %n, %c64 : index
  cf.assert %a, "first"
  affine.for %k = 0 to 8 {
    affine.store %k, %i[%k] : memref<8xindex>
  }
  %b = arith.cmpi slt, %n, %c64 : index
  cf.assert %b, "checked already"
  %m = memref.load %i[%c0] : memref<8xindex>
  %c = arith.cmpi slt, %m, %c64 : index
  cf.assert %c, "second"
  return
}
