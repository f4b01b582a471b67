// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: gpu
//
// A thread does four neighbouring elements, with one access for all of them; the last one, which has
// fewer, does one after the other.

// CHECK:       gpu.func @kernel
// CHECK:         scf.if
// CHECK:           vector.load %arg0{{.*}} : {{.*}}, vector<4xf32>
// CHECK-COUNT-4:   math.exp
// CHECK:           vector.from_elements
// CHECK:           vector.store {{.*}} : {{.*}}, vector<4xf32>
// CHECK:         } else {
// CHECK-NOT:       vector
// CHECK-COUNT-3:   memref.store
// CHECK-NOT:       memref.store
// CHECK:         gpu.return
func.func @main(%a: memref<4194307xf32>, %b: memref<4194307xf32>) {
  affine.for %i = 0 to 4194307 {
    %x = affine.load %a[%i] : memref<4194307xf32>
    %y = math.exp %x : f32
    affine.store %y, %b[%i] : memref<4194307xf32>
  }
  return
}
