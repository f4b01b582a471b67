// PASSES: normalize-nests,forward-copies
//
// Pairs that are put one after the other are stored there at once.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT:        %[[X:.*]] = affine.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT:        affine.store %[[X]], %arg2[%[[I]], %[[J]] * 2] : memref<4x16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT:        %[[Y:.*]] = affine.load %arg1[%[[I]], %[[J]]]
// CHECK-NEXT:        affine.store %[[Y]], %arg2[%[[I]], %[[J]] * 2 + 1] : memref<4x16xf32>
//
// Where the copy takes digits of which there is no whole number it stays.
//
// CHECK:         affine.store %{{.*}}, %alloc{{.*}} : memref<4x8xf32>
// CHECK:         affine.load %alloc{{.*}}[%{{.*}} floordiv 8, %{{.*}} mod 8]
// CHECK-NEXT:    affine.store %{{.*}}, %arg3
#x = {role = "input", name = "x", dtype = "float32", shape = array<i64: 4, 8>, strides = array<i64: 8, 1>, constant = false, updates = -1 : i64}
#y = {role = "input", name = "y", dtype = "float32", shape = array<i64: 4, 8>, strides = array<i64: 8, 1>, constant = false, updates = -1 : i64}
#out = {role = "output", name = "out", dtype = "float32", shape = array<i64: 4, 16>, strides = array<i64: 16, 1>, constant = false, updates = -1 : i64}
#part = {role = "output", name = "part", dtype = "float32", shape = array<i64: 31>, strides = array<i64: 1>, constant = false, updates = -1 : i64}
func.func @main(%x: memref<4x8xf32> {polyblocks.arg = #x}, %y: memref<4x8xf32> {polyblocks.arg = #y},
                %out: memref<4x16xf32> {polyblocks.arg = #out}, %part: memref<31xf32> {polyblocks.arg = #part}) {
  %pairs = memref.alloc() : memref<4x8x2xf32>
  %rows = memref.alloc() : memref<4x8xf32>
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %a = affine.load %x[%i, %j] : memref<4x8xf32>
      affine.store %a, %pairs[%i, %j, 0] : memref<4x8x2xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %a = affine.load %y[%i, %j] : memref<4x8xf32>
      affine.store %a, %pairs[%i, %j, 1] : memref<4x8x2xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 16 {
      %a = affine.load %pairs[%i, %j floordiv 2, %j mod 2] : memref<4x8x2xf32>
      affine.store %a, %out[%i, %j] : memref<4x16xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      %a = affine.load %x[%i, %j] : memref<4x8xf32>
      %b = arith.negf %a : f32
      affine.store %b, %rows[%i, %j] : memref<4x8xf32>
    }
  }
  affine.for %i = 0 to 31 {
    %a = affine.load %rows[%i floordiv 8, %i mod 8] : memref<4x8xf32>
    affine.store %a, %part[%i] : memref<31xf32>
  }
  func.return
}
