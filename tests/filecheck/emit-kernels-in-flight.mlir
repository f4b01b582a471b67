// PASSES: stage-operands,emit-kernels
// TARGET: gpu
//
// Threads copy up to 13 elements each, which are counted with those between rows of shared memory. In a
// loop, four are loaded before the first of them is stored. In the second loop nothing comes from memory.

// CHECK:       gpu.func @tile
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step
// CHECK-COUNT-4:   memref.load %arg0
// CHECK-NOT:       memref.load
// CHECK-COUNT-4:   memref.store
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           memref.load %{{.*}} : memref<12x33xf32, #gpu
// CHECK-NEXT:      memref.store %{{.*}}, %arg1
// CHECK-NEXT:    }
// CHECK:         gpu.return
func.func @main(%a: memref<64x12x33xf32>, %b: memref<64x12x33xf32>) {
  affine.for %t = 0 to 64 {
    %l = memref.alloca() : memref<12x33xf32>
    affine.for %i = 0 to 12 {
      affine.for %j = 0 to 31 {
        %x = affine.load %a[%t, %i, %j + 1] : memref<64x12x33xf32>
        affine.store %x, %l[%i, %j] : memref<12x33xf32>
      }
    }
    affine.for %i = 0 to 12 {
      affine.for %j = 0 to 31 {
        %x = affine.load %l[%i, 30 - %j] : memref<12x33xf32>
        affine.store %x, %b[%t, %i, %j] : memref<64x12x33xf32>
      }
    }
  } {polyblocks.schedule = {
       kernel = "tile", resident = 1, group = 32, groups = 1, strided = false, width = 1}}
  return
}
