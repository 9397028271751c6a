//! How the expressions of a kernel depend on the tiles that are tuned.

/// Some of the tiles, a bit for each.
pub(super) type Tiles = u32;

/// What depends on elements: a value, an address, a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct At {
    /// The tiles whose first element is a part of it, as in `pid * B`.
    pub(super) starts: Tiles,
    /// The tiles whose lanes are, as in `arange(0, B)`.
    pub(super) lanes: Tiles,
    /// Those of the lanes that may lie beyond the size.
    pub(super) free: Tiles,
    /// The pointers that it is made of, a bit for each parameter.
    pub(super) roots: u64,
    /// Whether something loaded is a part of it.
    pub(super) is_data: bool,
}

/// What an expression is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// The same for all tiles and elements.
    Constant,
    At(At),
    /// How many tiles there are of one size, or of several together.
    Count(Option<usize>),
    /// The number of a tile: times one of these it is where that begins.
    Index(Tiles),
}

impl At {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            starts: self.starts | other.starts,
            lanes: self.lanes | other.lanes,
            free: self.free | other.free,
            roots: self.roots | other.roots,
            is_data: self.is_data || other.is_data,
        }
    }

    /// Whether it is the same however the elements are divided into tiles: `of_grid` are those that programs are counted by.
    pub(super) fn is_whole(self, of_grid: Tiles) -> bool {
        self.starts & !self.lanes == 0 && self.lanes & of_grid & !self.starts == 0
    }
}

impl Kind {
    /// What is computed of two; `None` where the number of a tile would be taken for something else.
    pub(super) fn and(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Constant, Self::Constant) => Self::Constant,
            (Self::At(one), Self::At(other)) => Self::At(one.and(other)),
            (Self::At(at), Self::Constant) | (Self::Constant, Self::At(at)) => Self::At(at),
            (Self::Index(one), Self::Index(other)) => Self::Index(one & other),
            (Self::Index(tiles), Self::Constant | Self::Count(_))
            | (Self::Constant | Self::Count(_), Self::Index(tiles)) => Self::Index(tiles),
            (Self::Count(_), Self::Count(_) | Self::Constant) | (Self::Constant, Self::Count(_)) => Self::Count(None),
            (Self::At(_), Self::Index(_) | Self::Count(_)) | (Self::Index(_) | Self::Count(_), Self::At(_)) => {
                return None;
            }
        })
    }

    /// What depends on no number of a tile.
    pub(super) fn at(self) -> Option<At> {
        match self {
            Self::Constant => Some(At::default()),
            Self::At(at) => Some(at),
            Self::Count(_) | Self::Index(_) => None,
        }
    }
}
