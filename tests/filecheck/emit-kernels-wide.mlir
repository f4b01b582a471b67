// PASSES: choose-kernels,emit-kernels
// TARGET: gpu
//
// A thread does four neighbouring elements, with one access for all of them if the buffers begin at
// multiples of 16 bytes; otherwise it does one after the other.

// CHECK:       gpu.func @kernel
// CHECK:         memref.extract_aligned_pointer_as_index %arg0
// CHECK:         memref.extract_aligned_pointer_as_index %arg1
// CHECK:         scf.if
// CHECK:           vector.load %arg0{{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-COUNT-4:   math.exp
// CHECK:           vector.from_elements
// CHECK:           vector.store {{.*}} {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK:         } else {
// CHECK-NOT:       vector
// CHECK-COUNT-4:   memref.store
// CHECK-NOT:       memref.store
// CHECK:         gpu.return
func.func @main(%a: memref<4194304xf32>, %b: memref<4194304xf32>) {
  affine.for %i = 0 to 4194304 {
    %x = affine.load %a[%i] : memref<4194304xf32>
    %y = math.exp %x : f32
    affine.store %y, %b[%i] : memref<4194304xf32>
  }
  return
}
