// PASSES: normalize-nests,forward-copies
//
// What is copied as a matrix of another shape is made in its place: rows 0 to 3 and 4 to 7 of the
// buffer are the two matrices of the output. The last one's rows would become quotients.

// CHECK-LABEL: @main
// CHECK:         arith.mulf
// CHECK-NEXT:    affine.store %{{.*}}, %arg1[0, %{{.*}}, %{{.*}}] : memref<2x4x8xf32>
// CHECK:         arith.addf
// CHECK-NEXT:    affine.store %{{.*}}, %arg1[1, %{{.*}}, %{{.*}}] : memref<2x4x8xf32>
// CHECK:         affine.store %{{.*}}, %alloc
// CHECK:         affine.load %alloc
// CHECK:         affine.store %{{.*}}, %arg2
// CHECK:         return
#x = {role = "input", name = "x", dtype = "float32", shape = array<i64: 4, 8>, strides = array<i64: 8, 1>, constant = false, updates = -1 : i64}
#out = {role = "output", name = "out", dtype = "float32", shape = array<i64: 2, 4, 8>, strides = array<i64: 32, 8, 1>, constant = false, updates = -1 : i64}
#flat = {role = "output", name = "flat", dtype = "float32", shape = array<i64: 2, 3, 8>, strides = array<i64: 24, 8, 1>, constant = false, updates = -1 : i64}
func.func @main(%x: memref<4x8xf32> {polyblocks.arg = #x}, %out: memref<2x4x8xf32> {polyblocks.arg = #out},
                %more: memref<2x3x8xf32> {polyblocks.arg = #flat}) {
  %both = memref.alloc() : memref<8x8xf32>
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %a = affine.load %x[%i, %j] : memref<4x8xf32>
      %b = arith.mulf %a, %a : f32
      affine.store %b, %both[%i, %j] : memref<8x8xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %a = affine.load %x[%i, %j] : memref<4x8xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %both[%i + 4, %j] : memref<8x8xf32>
    }
  }
  affine.for %m = 0 to 2 {
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 8 {
        %a = affine.load %both[%m * 4 + %i, %j] : memref<8x8xf32>
        affine.store %a, %out[%m, %i, %j] : memref<2x4x8xf32>
      }
    }
  }
  %rows = memref.alloc() : memref<6x8xf32>
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 8 {
      %a = affine.load %x[%i floordiv 2, %j] : memref<4x8xf32>
      %b = arith.mulf %a, %a : f32
      affine.store %b, %rows[%i, %j] : memref<6x8xf32>
    }
  }
  affine.for %m = 0 to 2 {
    affine.for %i = 0 to 3 {
      affine.for %j = 0 to 8 {
        %a = affine.load %rows[%m * 3 + %i, %j] : memref<6x8xf32>
        affine.store %a, %more[%m, %i, %j] : memref<2x3x8xf32>
      }
    }
  }
  func.return
}
